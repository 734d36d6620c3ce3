// The tables and pictures below the time axis, of which one is visible at a time.

import { chart } from "./curve";
import { button, el } from "../dom";
import { draw, tree, type Node as FlameNode } from "./flame";
import { duration, onCpus, short } from "../format";
import type { Model } from "../model";
import { selected } from "./selection";
import type { State, Store } from "../state";
import * as tables from "./tables";
import { tableView } from "./tableview";
import type { Theme } from "../theme";
import { panel } from "./whatif";

type Choose = (row: tables.Row) => void;
/** `isGain`: the table has results that are known only at the end of a run. */
interface Tab { id: string; title: string; isGain?: true; make: (model: Model, state: State, theme: Theme, choose: Choose) => Node[] }

const TABS: Tab[] = [
  { id: "functions", title: "Functions", make: (model, _, __, choose) => [tableView(tables.functions(model.doc.report), choose), tableView(tables.waits(model.doc.report), choose)] },
  { id: "locks", title: "Locks", make: (model, _, __, choose) => [tableView(tables.locks(model.doc.report), choose)] },
  { id: "threads", title: "Threads", make: (model, state, _, choose) => [tableView(tables.threads(model, state.cpus), choose)] },
  { id: "requests", title: "Requests", make: (model, _, __, choose) => [tableView(tables.requests(model.doc.report), choose)] },
  { id: "curve", title: "Speed-up", isGain: true, make: (model, state, theme, choose) => [chart(model, state.cpus, theme), crossovers(model), tableView(tables.curve(model), choose), tableView(tables.points(model), choose)] },
  { id: "flames", title: "Flame graphs", make: flames },
  { id: "what-if", title: "What if", isGain: true, make: (model, state) => [panel(model, state.cpus)] },
  { id: "parallelism", title: "Parallelism", make: (model, _, __, choose) => [tableView(tables.quartz(model), choose)] },
  { id: "slack", title: "Slack", isGain: true, make: (model, _, __, choose) => [tableView(tables.slack(model), choose)] },
  { id: "paths", title: "Paths", isGain: true, make: (model, _, __, choose) => [tableView(tables.paths(model), choose)] },
  { id: "selection", title: "Selection", make: selection },
  { id: "notes", title: "Notes", make: (model, _, __, choose) => [tableView(tables.notes(model.doc.report), choose)] },
];

const OF_WHOLE = "Of the whole run, not of the selected range: Selection has the sums of the range.";
const GAIN_OF_WHOLE = "Of the whole run: a change in the selected range moves everything after it, so the gain is known only at the run's end. Selection has the critical path of the range.";

export const TAB_IDS = TABS.map((tab) => tab.id);

function crossovers(model: Model): HTMLElement {
  const { saturation } = model.doc.predict;
  const text = saturation ? `From ${onCpus(saturation.cpus)} on, more CPUs gain little: the speed-up is at most ${saturation.most_speedup.toFixed(2)}.` : "";
  const turns = model.doc.predict.crossovers.map((of) => `From ${onCpus(of.cpus)} on ${short(of.function)} comes first instead of ${short(of.over)}.`);
  return el("p", { class: "note" }, [text, ...turns].join(" "));
}

function flames(model: Model, state: State, theme: Theme): Node[] {
  const matches = state.search.trim().toLowerCase();
  const one = (cpus: number, title: string): HTMLElement => {
    const { root, negative } = tree(model, cpus);
    const place = el("div", { class: "flame" });
    const show = (node: FlameNode): void => place.replaceChildren(draw(node, root.ns, Math.max(320, place.clientWidth || 620), theme, matches, (chosen) => show(chosen === node ? root : chosen)));
    const note = negative < 0 ? el("p", { class: "note" }, `Call stacks with a negative weight (${duration(negative)} together) cannot be drawn.`) : null;
    const made = el("figure", {}, el("figcaption", {}, `${title}: ${duration(root.ns)}`), place, note);
    requestAnimationFrame(() => show(root));
    return made;
  };
  return [el("div", { class: "beside" }, one(-1, "CPU time"), one(state.cpus, `Critical path on ${onCpus(model.doc.cpus[state.cpus])}`))];
}

function selection(model: Model, state: State, _: Theme, choose: Choose): Node[] {
  const run = model.measured;
  if (!run) return [el("p", { class: "note" }, "Ranges of the measured run can be selected; this program was written by hand.")];
  const [from, to] = state.selection ?? [0, run.length];
  const what = state.selection ? `${duration(from)} to ${duration(to)}` : "the whole run (shift and drag in a picture selects a range)";
  if (!(to > from)) return [el("p", { class: "note" }, "The recording has no length.")];
  return [el("p", { class: "note" }, `Measured, ${what}.`), ...selected(model, run, state.cpus, from, to).map((table) => tableView(table, choose))];
}

export class Tabs {
  readonly element = el("section", { class: "tabs" });
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly panel = el("div", { role: "tabpanel", id: "panel", tabindex: 0 });

  constructor(private readonly model: Model, private readonly store: Store, private readonly theme: () => Theme, private readonly choose: Choose) {
    const bar = el("div", { role: "tablist", class: "bar", "aria-label": "Tables" });
    for (const tab of TABS) {
      const made = button(tab.title, () => store.set({ tab: tab.id }), { role: "tab", id: `tab-${tab.id}`, "aria-controls": "panel" });
      this.buttons.set(tab.id, made);
      bar.append(made);
    }
    bar.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const place = TAB_IDS.indexOf(this.store.state.tab);
      const next = TAB_IDS[(place + step + TAB_IDS.length) % TAB_IDS.length];
      store.set({ tab: next });
      this.buttons.get(next)?.focus();
    });
    this.element.append(bar, this.panel);
  }

  show(): void {
    const { tab: wanted } = this.store.state;
    const tab = TABS.find((of) => of.id === wanted) ?? TABS[0];
    for (const [id, made] of this.buttons) {
      made.setAttribute("aria-selected", String(id === tab.id));
      made.tabIndex = id === tab.id ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${tab.id}`);
    const { selection: range } = this.store.state;
    const isWhole = range !== null && tab.id !== "selection";
    const note = isWhole ? [el("p", { class: "note", id: "whole" }, tab.isGain ? GAIN_OF_WHOLE : OF_WHOLE)] : [];
    this.panel.replaceChildren(...note, ...tab.make(this.model, this.store.state, this.theme(), this.choose));
  }
}
