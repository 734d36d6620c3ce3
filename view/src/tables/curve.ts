// The speed-up curve: the predicted speed-ups with their range, the point from which on more CPUs do not help, and
// measured times.

import { svg } from "../dom";
import { duration, fileName } from "../format";
import type { Model } from "../model";
import type { Theme } from "../theme";

// The picture is as wide as a narrow screen, so that its text is never smaller there.
const WIDTH = Math.min(560, Math.max(280, (globalThis.innerWidth ?? 1280) - 32));
const [HEIGHT, LEFT, FLOOR] = [260, 46, 34];

export function chart(model: Model, cpus: number, theme: Theme): SVGElement {
  const rows = model.doc.predict.results;
  const one = rows.find((row) => row.cpus === 1);
  const graph = svg("svg", { width: WIDTH, height: HEIGHT, class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": "Speed-up by number of CPUs; the table next to the picture has the numbers" });
  if (!rows.length) return graph;
  // CPU counts are at equal distances, because unlimited CPUs have a point, too.
  const x = (place: number) => LEFT + ((place + 0.5) / rows.length) * (WIDTH - LEFT - 10);
  // The speed-up that belongs to a time, relative to the same base as the row's speed-up.
  const speedup = (row: (typeof rows)[number], ns: number) => (ns > 0 ? (row.speedup * row.time_ns) / ns : 0);
  const measured = measuredPoints(model);
  const reached = one ? measured.filter((point) => point.time_ns > 0).map((point) => one.time_ns / point.time_ns) : [];
  const most = Math.max(1, ...rows.map((row) => speedup(row, row.low_ns)), ...reached);
  const y = (of: number) => HEIGHT - FLOOR - (of / (most * 1.1)) * (HEIGHT - FLOOR - 12);
  for (let mark = 0; mark <= most * 1.1; mark += most > 8 ? Math.ceil(most / 6) : most > 3 ? 1 : 0.5) {
    graph.append(svg("line", { x1: LEFT, x2: WIDTH - 10, y1: y(mark), y2: y(mark), stroke: theme.line }),
      svg("text", { x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end", fill: theme.dim }, String(mark)));
  }
  const band = [...rows.map((row, place) => [x(place), y(speedup(row, row.low_ns))]),
    ...rows.map((row, place) => [x(place), y(speedup(row, row.high_ns))]).reverse()];
  graph.append(svg("polygon", { points: band.map((point) => point.join(",")).join(" "), fill: theme.select }));
  const line = rows.map((row, place) => `${x(place)},${y(row.speedup)}`).join(" ");
  graph.append(svg("polyline", { points: line, fill: "none", stroke: theme.path, "stroke-width": 2 }));
  rows.forEach((row, place) => {
    const point = svg("circle", { cx: x(place), cy: y(row.speedup), r: place === cpus ? 6 : 3.5, fill: theme.path },
      svg("title", {}, `${row.cpus} CPUs: ${row.speedup.toFixed(2)}, ${duration(row.time_ns)}`));
    graph.append(point, svg("text", { x: x(place), y: HEIGHT - FLOOR + 16, "text-anchor": "middle", fill: theme.text }, row.cpus === "inf" ? "∞" : String(row.cpus)));
  });
  graph.append(svg("text", { x: WIDTH / 2, y: HEIGHT - 4, "text-anchor": "middle", fill: theme.dim }, "CPUs"));
  for (const point of one ? measured : []) {
    const place = rows.findIndex((row) => row.cpus === point.cpus);
    if (place < 0 || point.time_ns <= 0) continue;
    const [left, top] = [x(place), y(one!.time_ns / point.time_ns)];
    graph.append(svg("path", { d: `M${left - 5},${top - 5}l10,10m0,-10l-10,10`, stroke: theme.text, "stroke-width": 2, class: "measured" },
      svg("title", {}, `${fileName(point.file)}, measured: ${duration(point.time_ns)}`)));
  }
  return graph;
}

/** How long this recording and the others took on the CPUs of their machines. */
export function measuredPoints(model: Model): { file: string; cpus: number; time_ns: number }[] {
  const { about, points } = model.doc;
  const own = model.measured && about.recorded_cpus !== null ? [{ file: about.file, cpus: about.recorded_cpus, time_ns: model.measured.length }] : [];
  return [...own, ...points];
}
