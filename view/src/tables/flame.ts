// Flame graphs of the CPU time, and of the causes of the predicted time on the chosen number of CPUs.

import { svg } from "../dom";
import { duration, percent, short } from "../format";
import type { Model } from "../model";
import { functionColour, type Theme } from "../theme";

export interface Node { name: string; ns: number; children: Map<string, Node> }

const ROW = 17;
const MOST_ROWS = 40;

/** The tree of all stacks. `cpus` is the index of a CPU count; -1 means CPU time. Negative weights cannot be drawn,
 * so `negative` is their sum. */
export function tree(model: Model, cpus: number): { root: Node; negative: number } {
  const root: Node = { name: "all", ns: 0, children: new Map() };
  let negative = 0;
  const put = (names: string[], ns: number): void => {
    if (ns < 0) negative += ns;
    if (!(ns > 0)) return;
    root.ns += ns;
    let node = root;
    for (const name of names) {
      let child = node.children.get(name);
      if (!child) node.children.set(name, (child = { name, ns: 0, children: new Map() }));
      child.ns += ns;
      node = child;
    }
  };
  for (const flame of model.doc.flames) {
    const names = flame.functions.map((of) => model.functionName(of));
    put(names.length ? names : [model.functionName(undefined)], cpus < 0 ? flame.cpu_ns : flame.owed_ns[cpus]);
  }
  if (cpus >= 0) {
    for (const wait of model.doc.report.results[cpus]?.waits ?? []) {
      put([`[${[wait.kind.replaceAll("_", " "), wait.object].filter(Boolean).join(" ")}]`], wait.weighted_ns);
    }
  }
  return { root, negative };
}

/** Draws the tree below this node. `choose` is called with the frame that the user clicked. */
export function draw(root: Node, all: number, width: number, theme: Theme, matches: string, choose: (node: Node) => void): SVGElement {
  const frames: { node: Node; x: number; depth: number }[] = [];
  let deepest = 0;
  const place = (node: Node, x: number, depth: number): void => {
    const wide = (node.ns / root.ns) * width;
    if (wide < 0.4 || depth >= MOST_ROWS) return;
    frames.push({ node, x, depth });
    deepest = Math.max(deepest, depth);
    for (const child of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      place(child, x, depth + 1);
      x += (child.ns / root.ns) * width;
    }
  };
  if (root.ns > 0) place(root, 0, 0);
  const height = (deepest + 1) * ROW;
  const graph = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "flame graph" });
  for (const { node, x, depth } of frames) graph.append(frame(node, all, x, (node.ns / root.ns) * width, height - (depth + 1) * ROW, theme, matches, choose));
  return graph;
}

function frame(node: Node, all: number, x: number, wide: number, y: number, theme: Theme, matches: string, choose: (node: Node) => void): SVGElement {
  const isWait = node.name.startsWith("[");
  const isMatch = matches !== "" && node.name.toLowerCase().includes(matches);
  const fill = isMatch ? theme.path : isWait ? theme.states[5] : functionColour(theme, node.name);
  const group = svg("g", {}, svg("title", {}, `${node.name}: ${duration(node.ns)}, ${percent(node.ns / all)}`),
    svg("rect", { x: x.toFixed(2), y, width: Math.max(wide - 0.5, 0.3).toFixed(2), height: ROW - 1, fill }));
  const room = Math.floor((wide - 6) / 6.6);
  if (room >= 3) {
    group.append(svg("text", { x: (x + 3).toFixed(2), y: y + 12, fill: isWait ? theme.text : "#ffffff" }, short(node.name, room)));
  }
  group.addEventListener("click", () => choose(node));
  return group;
}
