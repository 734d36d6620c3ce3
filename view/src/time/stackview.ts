// Draws the rows below a thread's own row: its recorded calls, and the sampled stacks.

import { fitted, GUTTER, type Surface } from "./canvas";
import type { Shown } from "./flow";
import { short } from "../format";
import type { Model } from "../model";
import { lastAt, type Run } from "./run";
import { functionColour, type Theme } from "../theme";

/** Height of a row, in pixels. */
export const CALL = 14;
/** Largest depth of calls that are drawn. */
const MOST_DEEP = 8;

export class StackView {
  constructor(private readonly model: Model, private readonly run: Run, private readonly surface: Surface) {}

  /** The numbers of rows below the thread's own row: for recorded calls, and for sampled stacks. */
  depth(lane: number): [number, number] {
    const { calls, samples } = this.run;
    let [called, sampled] = [0, 0];
    for (let call = calls?.first[lane] ?? 0; calls && call < calls.first[lane + 1]; call++) called = Math.max(called, calls.depth[call] + 1);
    for (let i = samples?.first[lane] ?? 0; samples && i < samples.first[lane + 1]; i++) {
      sampled = Math.max(sampled, this.model.doc.names.stacks[samples.stack[i]]?.length ?? 0);
    }
    return [Math.min(called, MOST_DEEP), Math.min(sampled, MOST_DEEP)];
  }

  calls(lane: number, y: number, shown: Shown): void {
    const { calls } = this.run;
    if (!calls) return;
    const { scale, theme } = shown;
    const drawn: number[] = [];
    for (let call = calls.first[lane]; call < calls.first[lane + 1]; call++) {
      const [from, to, depth] = [calls.time[call], calls.time[call] + calls.length[call], calls.depth[call]];
      if (from > scale.to) break;
      if (to < scale.from || depth >= MOST_DEEP) continue;
      const [x, right] = [Math.max(scale.x(from), GUTTER), Math.min(scale.x(to), scale.width)];
      if (right <= (drawn[depth] ?? 0) + 0.5) continue;
      drawn[depth] = right;
      this.frame(this.model.functionName(calls.function[call]), x, right, y + depth * CALL, theme);
    }
  }

  private frame(name: string, x: number, right: number, y: number, theme: Theme): void {
    const { context } = this.surface;
    context.fillStyle = functionColour(theme, name);
    context.fillRect(x, y, Math.max(right - x, 0.5), CALL - 1);
    if (right - x > 40) {
      context.fillStyle = "#ffffff";
      context.fillText(fitted(context, short(name), right - x - 6), x + 3, y + CALL / 2);
    }
  }

  /** Draws the sampled stacks, outermost function on top. Each stack covers half of the time to the previous and to
   * the next sample. */
  stacks(lane: number, y: number, shown: Shown): void {
    const { samples } = this.run;
    if (!samples) return;
    const { scale, theme } = shown;
    const { stacks, places } = this.model.doc.names;
    const [first, end] = [samples.first[lane], samples.first[lane + 1]];
    let drawn = 0;
    for (let i = Math.max(lastAt(samples, lane, scale.from), first); i < end; i++) {
      const time = samples.time[i];
      const item = this.run.lanes.at(lane, time);
      if (item < 0) continue;
      const [from, to] = [this.run.lanes.start[item], this.run.lanes.endOf(lane, item)];
      const begin = Math.max(from, i > first ? (samples.time[i - 1] + time) / 2 : from);
      if (begin > scale.to) break;
      const x = Math.max(scale.x(begin), GUTTER);
      const right = Math.min(scale.x(Math.min(to, i + 1 < end ? (samples.time[i + 1] + time) / 2 : to)), scale.width);
      if (right <= drawn + 0.5) continue;
      drawn = right;
      const frames = [...(stacks[samples.stack[i]] ?? [])].reverse().slice(0, MOST_DEEP);
      frames.forEach((place, depth) => this.frame(this.model.functionName(places[place][0]), x, right, y + depth * CALL, theme));
    }
  }
}
