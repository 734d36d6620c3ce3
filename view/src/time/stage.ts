// The pictures over time, one below the other on one time axis: parallelism, the measured run, the predicted run.

import { GUTTER, Scale, Surface } from "./canvas";
import { el } from "../dom";
import { duration, onCpus } from "../format";
import { Flow, type Shown, type Stretch } from "./flow";
import { listen } from "./input";
import type { Model } from "../model";
import { draw as drawParallelism, Series } from "./parallelism";
import { IDLE, LOCK, READY, RUNNING, SPINNING, UNKNOWN, WAITING, type Run } from "./run";
import type { Picked, Store } from "../state";
import type { Theme } from "../theme";

interface Pane { kind: Picked["run"]; surface: Surface; title: HTMLElement; flow: Flow | null }

export class Stage {
  readonly element = el("div", { class: "stage" });
  private readonly graph = new Surface("Threads that run, spin and are ready, over time");
  private readonly panes: Pane[];
  private readonly series = new Map<string, Series>();
  private lit: ReadonlySet<number> = new Set();
  private way: readonly Stretch[] = [];
  private pending = false;
  private readonly legend = el("p", { class: "legend" });
  private legendOf: Theme | null = null;

  constructor(private readonly model: Model, private readonly store: Store, private theme: () => Theme) {
    const pane = (kind: Picked["run"], label: string): Pane => ({ kind, surface: new Surface(label), title: el("h2", { class: "pane" }), flow: null });
    this.panes = [pane("predicted", "Execution flow of the predicted run with its critical path")];
    if (model.measured) this.panes.unshift(pane("measured", "Execution flow of the measured run"));
    this.element.append(this.graph.canvas, this.legend, ...this.panes.flatMap((of) => [of.title, of.surface.canvas]));
    const around = { store, length: model.length, scale: () => this.scale(), scroll: () => undefined, click: () => undefined };
    listen(this.graph.canvas, around);
    for (const of of this.panes) {
      listen(of.surface.canvas, {
        ...around,
        scroll: (pixels) => {
          of.flow?.scrollBy(pixels);
          this.redraw();
        },
        click: (x, y) => this.click(of, x, y),
      });
      of.surface.canvas.addEventListener("pointermove", (event) => {
        if (event.buttons === 0) of.surface.canvas.title = of.flow?.tell(event.offsetX, event.offsetY, this.scale()) ?? "";
      });
    }
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  scale(): Scale {
    const { from, to } = this.store.state;
    return new Scale(from, to, Math.max(200, this.element.clientWidth));
  }

  /** Marks these threads, and a path at its place on unlimited CPUs. */
  light(threads: Iterable<number>, way: readonly Stretch[] = []): void {
    this.lit = new Set(threads);
    this.way = way;
    const [first] = this.lit;
    for (const { flow } of this.panes) if (flow && first !== undefined) flow.reveal(flow.run.threads.indexOf(first));
    this.redraw();
  }

  /** Scrolls to the selected item. */
  reveal(picked: Picked): void {
    this.build();
    this.panes.find((pane) => pane.kind === picked.run)?.flow?.reveal(picked.lane);
    this.redraw();
  }

  redraw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  private build(): void {
    const { cpus } = this.store.state;
    for (const pane of this.panes) {
      const run = this.model.run(pane.kind, cpus);
      if (run && pane.flow?.run !== run) {
        const { open, scroll } = pane.flow ?? { open: new Set<string>(), scroll: 0 };
        pane.flow = new Flow(this.model, run, pane.kind, pane.surface, this.model.length);
        pane.flow.unfold(open);
        pane.flow.scroll = scroll;
      }
    }
  }

  /** Explains the colours. */
  private explain(theme: Theme): void {
    if (this.legendOf === theme) return;
    this.legendOf = theme;
    const swatch = (colour: string, text: string): HTMLElement => {
      const box = el("i");
      box.style.background = colour;
      return el("span", {}, box, text);
    };
    const [first, second, third] = theme.functions;
    const { states } = theme;
    this.legend.replaceChildren(
      swatch(states[RUNNING], "runs"), swatch(`linear-gradient(90deg, ${first} 34%, ${second} 34% 67%, ${third} 67%)`, "runs, by function"),
      swatch(states[SPINNING], "spins"), swatch(states[READY], "ready: waits for a CPU"), swatch(states[LOCK], "waits for a lock"),
      swatch(states[WAITING], "waits for something else"), swatch(states[IDLE], "has nothing to do"), swatch(states[UNKNOWN], "not known"),
      swatch(theme.path, "critical path"));
  }

  /** Draws everything now. Returns the time that this took, in milliseconds. */
  draw(): number {
    const begun = performance.now();
    this.build();
    const { cpus, selection, picked } = this.store.state;
    const [scale, theme] = [this.scale(), this.theme()];
    const main = this.model.measured ?? this.model.predicted(cpus);
    const name = this.model.measured ? "measured" : `predicted${cpus}`;
    this.explain(theme);
    drawParallelism(this.graph, this.seriesOf(name, main), scale, theme, "Parallelism");
    const room = Math.max(160, window.innerHeight * (this.panes.length > 1 ? 0.3 : 0.55));
    for (const pane of this.panes) {
      if (!pane.flow) continue;
      pane.title.textContent = this.title(pane);
      const marked = picked?.run === pane.kind ? { lane: picked.lane, time: picked.time } : null;
      const shown: Shown = { scale, theme, cpus, selection: pane.kind === "measured" ? selection : null, marked, lit: this.lit, way: this.model.doc.cpus[cpus] === "inf" ? this.way : [] };
      pane.flow.draw(shown, Math.min(room, pane.flow.height));
    }
    return performance.now() - begun;
  }

  private seriesOf(name: string, run: Run): Series {
    let series = this.series.get(name);
    if (!series) this.series.set(name, (series = new Series(run, this.model.length)));
    return series;
  }

  private title(pane: Pane): string {
    const run = pane.flow?.run;
    const coarse = run && run.quantum > 0 ? ` Shorter than ${duration(run.quantum)}: summed up, order not kept.` : "";
    if (pane.kind === "measured") {
      const { doc } = this.model;
      const left = doc.measured;
      const out = [
        left && left.calls_left_out > 0 && `${left.calls_left_out} calls shorter than ${duration(left.calls_left_out_below_ns)} are not shown.`,
        left && left.sections_left_out > 0 && `${left.sections_left_out} lock sections shorter than ${duration(left.sections_left_out_below_ns)} are not shown.`,
      ].filter(Boolean);
      return [`Measured: ${duration(run?.length ?? 0)} on ${doc.about.recorded_cpus ?? "?"} CPUs.${coarse}`, ...out].join(" ");
    }
    const { cpus } = this.store.state;
    const path = this.model.path(cpus);
    const at = onCpus(this.model.doc.cpus[cpus]);
    const result = this.model.doc.report.results[cpus];
    const how = path.isOne ? `Predicted on ${at}: ${duration(result?.time_ns ?? run?.length ?? 0)}; thick: the critical path.`
      : `Predicted on ${at}: ${duration(result?.time_ns ?? 0)}. Thick: the critical path, as strong as its weight, where it lies on unlimited CPUs.`;
    return how + coarse;
  }

  private click(pane: Pane, x: number, y: number): void {
    const { flow } = pane;
    const row = flow?.rowAt(y);
    if (!flow || !row) return;
    if (x < GUTTER || row.lane < 0) {
      flow.toggle(row);
      this.redraw();
      return;
    }
    this.store.set({ picked: { run: pane.kind, lane: row.lane, time: Math.max(0, this.scale().time(x)) } });
  }
}
