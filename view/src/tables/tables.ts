// Tables of the rows in longpole's own documents. A cell's number is the document's number; a cell's text is for
// people.

import { measuredPoints } from "./curve";
import type { Endpoint, Report } from "../data";
import type { Model } from "../model";
import { duration, fileName, grouped, onCpus, percent, short } from "../format";

export interface Cell { text: string; value?: number; title?: string }
export interface Row {
  cells: Cell[];
  /** The threads that are marked when the user chooses this row. */
  lights?: string[];
  /** The path that is marked when the user chooses this row: its stays in threads, one after the other. */
  way?: { thread: string; length: number }[];
}
export interface Table {
  id: string; title: string; note?: string; columns: string[]; rows: Row[];
  /** Number of rows that matter. The others are shown only on request. */
  first?: number;
}

/** A row with a smaller share of all times does not matter. */
const LEAST = 0.0005;

export const name = (text: string | null): Cell => ({ text: text === null ? "(outside of functions)" : short(text), ...(text ? { title: text } : {}) });
const time = (ns: number | undefined | null): Cell => (ns === undefined || ns === null ? { text: "–" } : { text: duration(ns), value: ns });
const count = (of: number | undefined | null): Cell => (of === undefined || of === null ? { text: "–" } : { text: grouped(of), value: of });
const share = (ns: number | undefined, all: number, error?: number): Cell => {
  if (ns === undefined) return { text: "–" };
  const width = error && all > 0 && error / all >= 0.005 ? ` ±${((error / all) * 100).toFixed(0)}` : "";
  return { text: all > 0 ? percent(ns / all).replace(" %", `${width} %`) : "–", value: ns, title: duration(ns) };
};

export function functions(report: Report): Table {
  const { results } = report;
  const best = new Map<string, number>();
  for (const result of results) {
    for (const row of result.functions) {
      best.set(row.function, Math.max(best.get(row.function) ?? -Infinity, result.time_ns > 0 ? row.tet_ns / result.time_ns : 0));
    }
  }
  const byCpus = results.map((result) => new Map(result.functions.map((row) => [row.function, row])));
  const sorted = [...best].sort((a, b) => b[1] - a[1]);
  const order = sorted.map(([of]) => of);
  const first = (of: string) => byCpus.map((rows) => rows.get(of)).find((row) => row !== undefined);
  return {
    id: "functions",
    title: "Functions: share of the critical path by number of CPUs",
    first: sorted.filter(([, of]) => of >= LEAST).length,
    note: "Share of the predicted time that depends on the function's own computing. ± for numbers from samples.",
    columns: ["function", "calls", ...results.map((result) => onCpus(result.cpus)), "where"],
    rows: order.map((of) => {
      const known = first(of);
      const calls: Cell = known?.uncounted ? { text: "–" } : count(known?.calls);
      // If the function got its probes so late that no call was recorded, the number of calls is unknown.
      if (known?.calls_partial) calls.text = known.calls > 0 ? `≥ ${calls.text}` : "–";
      return {
        cells: [
          name(of), calls,
          ...results.map((result, place) => {
            const row = byCpus[place].get(of);
            return share(row?.tet_ns, result.time_ns, row?.tet_error_ns);
          }),
          { text: fileName(known?.location ?? ""), title: known?.location ?? "" },
        ],
      };
    }),
  };
}

export function locks(report: Report): Table {
  const { results, locks: all = [] } = report;
  const held = results.map((result) => new Map((result.locks ?? []).map((row) => [row.lock, row.held_ns])));
  return {
    id: "locks",
    title: "Locks",
    note: "As recorded; then the share of the critical path that is computed with the lock held, by number of CPUs.",
    columns: ["lock", "acquired", "contended", "waited", "held", "holder", ...results.map((result) => onCpus(result.cpus))],
    rows: all.map((row) => ({
      cells: [
        name(row.lock), count(row.acquisitions), count(row.contended), time(row.wait_ns), time(row.hold_ns), { text: row.holder ?? "" },
        ...results.map((result, place) => share(held[place].get(row.lock), result.time_ns)),
      ],
    })),
  };
}

export function waits(report: Report): Table {
  const { results } = report;
  const key = (row: { kind: string; object?: string }) => [row.kind.replaceAll("_", " "), row.object].filter(Boolean).join(" ");
  const most = new Map<string, number>();
  const owed = results.map((result) => new Map((result.waits ?? []).map((row) => [key(row), row.weighted_ns])));
  results.forEach(({ time_ns }, place) => {
    for (const [of, ns] of owed[place]) most.set(of, Math.max(most.get(of) ?? 0, time_ns > 0 ? ns / time_ns : 0));
  });
  const sorted = [...most].sort((a, b) => b[1] - a[1]);
  return {
    id: "waits",
    first: sorted.filter(([, of]) => of >= LEAST).length,
    title: "Share of the predicted time in which nothing is computed",
    columns: ["wait", ...results.map((result) => onCpus(result.cpus))],
    rows: sorted.map(([of]) => ({
      cells: [
        { text: of },
        ...results.map((result, place) => share(owed[place].get(of), result.time_ns)),
      ],
    })),
  };
}

export function requests(report: Report): Table {
  return {
    id: "requests",
    title: "Requests over sockets",
    note: "Until the answer begins. What they spend their time on is known for the answered requests that take the most time together.",
    columns: ["port or address", "direction", "requests/s", "open at a time", "mean", "99 %", "their time"],
    rows: (report.limit?.requests ?? []).map((row) => ({
      cells: [
        name(row.name), { text: row.served ? "answered" : "sent" }, rate(row.per_second), rate(row.open), time(row.mean_ns), time(row.p99_ns),
        { text: spent(row.spent) },
      ],
    })),
  };
}

const rate = (of: number): Cell => ({ text: of < 10 ? of.toFixed(1) : grouped(of), value: of });

/** The causes that have a part in the time: `70 % registry.gate, 30 % computing`. */
export function spent(parts: Endpoint["spent"] = []): string {
  const shares = new Map<string, number>();
  for (const { kind, name: of, share } of parts) {
    // All functions count together as computing. The name of a lock needs no kind.
    const what = kind === "computing" ? kind : [kind === "lock" ? "" : kind.replaceAll("_", " "), of].filter(Boolean).join(" ");
    shares.set(what, (shares.get(what) ?? 0) + share);
  }
  const sorted = [...shares].filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
  return sorted.map(([what, share]) => `${(share * 100).toFixed(0)} % ${short(what)}`).join(", ");
}

export function curve(model: Model): Table {
  const { results } = model.doc.predict;
  return {
    id: "curve",
    title: "Predicted time by number of CPUs",
    columns: ["CPUs", "time", "from", "to", "speed-up", "efficiency"],
    rows: results.map((row) => ({
      cells: [
        { text: onCpus(row.cpus) }, time(row.time_ns), time(row.low_ns), time(row.high_ns),
        { text: row.speedup.toFixed(2), value: row.speedup }, { text: percent(row.efficiency), value: row.efficiency },
      ],
    })),
  };
}

/** The measured values, next to the predicted ones for the same number of CPUs. */
export function points(model: Model): Table {
  const predicted = new Map(model.doc.predict.results.map((row) => [row.cpus, row.time_ns]));
  return {
    id: "points",
    title: "Measured runs",
    note: "Times are of the recording's machine, with other programs on it. Crosses in the picture, if the number of CPUs is among the predicted ones.",
    columns: ["recording", "CPUs", "time", "predicted"],
    rows: measuredPoints(model).map((row) => ({
      cells: [{ text: fileName(row.file), title: row.file }, { text: String(row.cpus), value: row.cpus }, time(row.time_ns), time(predicted.get(row.cpus))],
    })),
  };
}

export function threads(model: Model, cpus: number): Table {
  const result = model.doc.predict.results.find((row) => String(row.cpus) === model.doc.cpus[cpus]);
  const title = `Threads in the run predicted for ${onCpus(model.doc.cpus[cpus])}`;
  if (!result?.threads.length && model.doc.names.threads.length) return leftOut("threads", title, "predict");
  return {
    id: "threads",
    title,
    columns: ["thread", "running", "spinning", "ready", "blocked"],
    rows: (result?.threads ?? []).map((row) => ({
      lights: [row.thread],
      cells: [name(row.thread), time(row.busy_ns), time(row.spinning_ns), time(row.ready_ns), time(row.blocked_ns)],
    })),
  };
}

/** Replaces a table that is too large for the page. */
function leftOut(id: string, title: string, command = id): Table {
  return { id, title, note: `Left out, since it is very large: longpole ${command}.`, columns: [title], rows: [] };
}

export function quartz(model: Model): Table {
  const { parallelism } = model.doc;
  if (!parallelism) return leftOut("parallelism", "Normalized processor time");
  const all = parallelism.elapsed_ns;
  return {
    id: "parallelism",
    title: `Normalized processor time, ${parallelism.run} run: time divided by the CPUs that are busy meanwhile`,
    note: `No CPU is busy for ${duration(parallelism.nobody_busy_ns)} of ${duration(all)}.`,
    columns: ["kind", "name", "itself", "with what it calls", "busy", "ready", "blocked", "calls", "CPUs busy meanwhile"],
    rows: parallelism.rows.map((row) => ({
      ...(row.kind === "thread" && row.name ? { lights: [row.name] } : {}),
      cells: [
        { text: row.kind }, name(row.name), share(row.normalized_self_ns, all), share(row.normalized_total_ns, all),
        time(row.busy_ns), time(row.ready_ns), time(row.blocked_ns), count(row.calls),
        { text: histogram(row.by_busy) },
      ],
    })),
  };
}

/** The numbers of busy CPUs and their shares of the time: `2: 70 %, 4: 30 %`. */
export function histogram(of: [number, number][]): string {
  const all = of.reduce((sum, [, ns]) => sum + ns, 0);
  const parts = of.filter(([, ns]) => ns / all >= 0.005).map(([cpus, ns]) => `${cpus}: ${percent(ns / all)}`);
  return parts.join(", ");
}

export function slack(model: Model): Table {
  const { slack: all } = model.doc;
  if (!all) return leftOut("slack", "Slack");
  return {
    id: "slack",
    title: "Slack on unlimited CPUs: what the run gains without the function",
    note: "On the path: time on the critical path. Without it: gained if locks are taken in the order of this run. For sure: gained in every case. Simulated: gained if locks may be taken in another order.",
    columns: ["function", "on the path", "without it", "for sure", "simulated"],
    rows: all.functions.map((row) => ({
      cells: [name(row.function), time(row.critical_path_ns), time(row.zeroing_ns), time(row.slack_ns), time(row.simulated_ns)],
    })),
  };
}

export function paths(model: Model): Table {
  const { paths: all } = model.doc;
  if (!all) return leftOut("paths", "The longest paths");
  return {
    id: "paths",
    title: "The longest paths on unlimited CPUs",
    note: `${grouped(all.path_count)} paths in all. Choose a path that has a way to mark it in the run on unlimited CPUs, each stay as early as possible.`,
    columns: ["path", "length", "of the longest", "way"],
    rows: all.paths.map((row) => ({
      lights: [...new Set((row.route ?? []).map((stay) => stay.thread))],
      way: (row.route ?? []).map(({ thread, parts }) => ({ thread, length: parts.reduce((sum, part) => sum + part.length_ns, 0) })),
      cells: [
        { text: String(row.rank), value: row.rank }, time(row.length_ns), { text: percent(row.nearness), value: row.nearness },
        { text: (row.route ?? []).map((stay) => stay.thread).slice(0, 12).join(" → ") },
      ],
    })),
  };
}

export function notes(report: Report): Table {
  return {
    id: "notes",
    title: "Notes",
    columns: ["severity", "note"],
    rows: report.findings.map((row) => ({ cells: [{ text: row.severity.replaceAll("_", " ") }, { text: row.text }] })),
  };
}
