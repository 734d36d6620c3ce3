// Tables for a selected range of the measured run: sums of the drawn items.

import type { Model } from "../model";
import { stretch } from "../details/causes";
import { duration, grouped, onCpus, percent } from "../format";
import { levels } from "../time/lanes";
import { normalized, type Normalized } from "../time/normalized";
import { CLASSES, lastAt, RUNNING, SPINNING, type Run } from "../time/run";
import { name as nameCell, type Cell, type Table } from "./tables";

const time = (ns: number): Cell => ({ text: duration(ns), value: ns });
const part = (ns: number, all: number): Cell => ({ text: percent(ns / all), value: ns, title: duration(ns) });

const share = (ns: number | undefined, all: number): Cell => (ns === undefined ? { text: "–" } : part(ns, all));
const NORMALIZED = "Normalized: time divided by the threads that compute meanwhile. What-if and slack are of the whole run.";

export function selected(model: Model, run: Run, cpus: number, from: number, to: number): Table[] {
  const divided = normalized(run, from, to);
  const measured = [threads(model, run, from, to, divided), functions(model, run, from, to, divided), locks(model, run, from, to), busy(run, from, to)];
  return model.path(cpus).isOne ? [...measured, path(model, cpus, from, to)] : measured;
}

/** What the critical path consists of in the same range of the predicted run. */
export function path(model: Model, cpus: number, from: number, to: number): Table {
  const sums = new Map<string, number>();
  const { lanes } = model.path(cpus);
  const [first, last] = lanes.count ? lanes.range(0, from, to) : [0, 0];
  for (let item = first; item < last; item++) {
    const found = stretch(model, cpus, 0, item);
    if (!found) continue;
    const name = found.wait ? `[${found.wait}]` : model.functionName(found.function);
    sums.set(name, (sums.get(name) ?? 0) + Math.max(0, Math.min(found.to, to) - Math.max(found.from, from)));
  }
  const all = [...sums.values()].reduce((sum, ns) => sum + ns, 0);
  const rows = [...sums].filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
  return {
    id: "selected-path",
    title: `Critical path on ${onCpus(model.doc.cpus[cpus])}, in the same stretch of the predicted run: ${duration(all)}`,
    columns: ["function", "time", "share"],
    rows: rows.map(([name, ns]) => ({ cells: [nameCell(name), time(ns), part(ns, all)] })),
  };
}

export function threads(model: Model, run: Run, from: number, to: number, divided: Normalized | null): Table {
  const shown = CLASSES.slice(1);
  const rows = run.threads.map((thread, lane) => {
    const sums = run.lanes.sum(lane, from, to);
    return { lights: [model.thread(thread)], sums, cells: [{ text: model.thread(thread) }, ...shown.map((_, of) => part(sums[of + 1], to - from)), share(divided?.lanes[lane], to - from)] };
  });
  rows.sort((a, b) => b.sums[RUNNING] - a.sums[RUNNING]);
  return { id: "selected-threads", title: `Threads, in ${duration(to - from)}`, columns: ["thread", ...shown, "normalized"], note: NORMALIZED, rows };
}

/** The functions in the samples of the range, and calls that overlap the range. */
export function functions(model: Model, run: Run, from: number, to: number, divided: Normalized | null): Table {
  const own = new Map<number, number>();
  const total = new Map<number, number>();
  const called = new Map<number, [number, number]>();
  // The normalized time of each thread is divided among its functions by their samples. Functions that ran while few
  // threads computed get more of it.
  const times = new Map<number, number>();
  let all = 0;
  const add = (sums: Map<number, number>, of: number) => sums.set(of, (sums.get(of) ?? 0) + 1);
  const { samples, calls } = run;
  const { stacks, places } = model.doc.names;
  for (let lane = 0; samples && lane + 1 < samples.first.length; lane++) {
    const weights = new Map<number, number>();
    for (let i = Math.max(lastAt(samples, lane, from), samples.first[lane]); i < samples.first[lane + 1]; i++) {
      if (samples.time[i] < from) continue;
      if (samples.time[i] >= to) break;
      all++;
      const on = (stacks[samples.stack[i]] ?? []).map((place) => places[place][0]);
      if (on.length) {
        add(own, on[0]);
        weights.set(on[0], (weights.get(on[0]) ?? 0) + 1 / (divided?.computing(samples.time[i]) ?? 1));
      }
      for (const of of new Set(on)) add(total, of);
    }
    const sum = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
    for (const [of, weight] of weights) times.set(of, (times.get(of) ?? 0) + ((divided?.lanes[lane] ?? 0) * weight) / sum);
  }
  for (let call = 0, lane = 0; calls && call < calls.length.length; call++) {
    while (call >= calls.first[lane + 1]) lane++;
    const within = Math.min(calls.time[call] + calls.length[call], to) - Math.max(calls.time[call], from);
    if (within <= 0 || calls.function[call] < 0) continue;
    const [count, ns] = called.get(calls.function[call]) ?? [0, 0];
    called.set(calls.function[call], [count + 1, ns + within]);
  }
  const order = [...new Set([...own.keys(), ...total.keys(), ...called.keys()])];
  order.sort((a, b) => (own.get(b) ?? 0) - (own.get(a) ?? 0) || (called.get(b)?.[1] ?? 0) - (called.get(a)?.[1] ?? 0));
  const seen = (count: number | undefined): Cell => (all ? { text: percent((count ?? 0) / all), value: count ?? 0 } : { text: "–" });
  return {
    id: "selected-functions",
    title: `Functions, by ${grouped(all)} samples of running threads and by recorded calls`,
    note: NORMALIZED,
    columns: ["function", "itself", "with what it calls", "normalized", "calls", "time in calls"],
    rows: order.map((of) => {
      const [count, ns] = called.get(of) ?? [0, 0];
      const calls: Cell[] = count ? [{ text: grouped(count), value: count }, time(ns)] : [{ text: "–" }, { text: "–" }];
      return { cells: [nameCell(model.functionName(of)), seen(own.get(of)), seen(total.get(of)), share(divided ? times.get(of) : undefined, to - from), ...calls] };
    }),
  };
}

export function locks(model: Model, run: Run, from: number, to: number): Table {
  const { sections } = run;
  const sums = new Map<number, { count: number; held: number; waited: number }>();
  for (let i = 0; sections && i < sections.time.length; i++) {
    const taken = sections.time[i];
    const within = (start: number, end: number) => Math.max(0, Math.min(end, to) - Math.max(start, from));
    const held = within(taken, taken + sections.held[i]);
    const waited = within(taken - sections.waited[i], taken);
    const isTaken = taken >= from && taken < to;
    if (!isTaken && held === 0 && waited === 0) continue;
    const sum = sums.get(sections.object[i]) ?? { count: 0, held: 0, waited: 0 };
    sums.set(sections.object[i], { count: sum.count + Number(isTaken), held: sum.held + held, waited: sum.waited + waited });
  }
  const rows = [...sums].sort((a, b) => b[1].waited - a[1].waited || b[1].held - a[1].held);
  return {
    id: "selected-locks",
    title: "Locks",
    columns: ["lock", "acquired", "held", "waited"],
    rows: rows.map(([of, sum]) => ({
      cells: [{ text: model.object(of) }, { text: grouped(sum.count), value: sum.count }, time(sum.held), time(sum.waited)],
    })),
  };
}

/** For each number of busy CPUs, the part of the range, to a thousandth of the range. */
export function busy(run: Run, from: number, to: number): Table {
  const bins = 1000;
  const at = levels(run.lanes, run.threads.map((_, lane) => lane), from, to, bins, CLASSES.length);
  const shares = new Map<number, number>();
  for (let bin = 0; bin < bins; bin++) {
    const running = Math.round(at[bin * CLASSES.length + RUNNING] + at[bin * CLASSES.length + SPINNING]);
    shares.set(running, (shares.get(running) ?? 0) + 1 / bins);
  }
  return {
    id: "selected-busy",
    title: "Threads on CPUs, in thousandths of the range",
    columns: ["threads", "share of the range"],
    rows: [...shares].sort((a, b) => a[0] - b[0]).map(([running, share]) => ({
      cells: [{ text: String(running), value: running }, { text: percent(share), value: share }],
    })),
  };
}
