// Draws the row of a thread: its states, functions and locks. Also draws the row of a group.

import { fitted, GUTTER, type Surface } from "./canvas";
import type { Shown } from "./flow";
import { short } from "../format";
import type { Model } from "../model";
import { Series } from "./parallelism";
import { ROW, type Row } from "./rows";
import { CLASSES, lastAt, LOCK, NONE, READY, RUNNING, sampleNear, SPINNING, type Run } from "./run";
import { functionColour, type Theme } from "../theme";

export class LaneView {
  private readonly series = new Map<string, Series>();

  constructor(private readonly model: Model, private readonly run: Run, private readonly surface: Surface, private readonly length: number) {}

  /** The number of a group's threads in each class, for each pixel. */
  group(row: Row, y: number, shown: Shown): void {
    let series = this.series.get(row.title);
    if (!series) this.series.set(row.title, (series = new Series(this.run, this.length, row.group ?? [])));
    const { scale, theme } = shown;
    const values = series.over(scale.from, scale.to, scale.pixels);
    // Most threads of a large group may not have started yet, or may have ended.
    let most = 1;
    for (let x = 0; x < scale.pixels; x++) {
      let sum = 0;
      for (let of = RUNNING; of < CLASSES.length; of++) sum += values[x * CLASSES.length + of];
      most = Math.max(most, sum);
    }
    for (let x = 0; x < scale.pixels; x++) this.shares(x, y, values.subarray(x * CLASSES.length), most, theme, null);
  }

  private shares(x: number, y: number, of: ArrayLike<number>, all: number, theme: Theme, running: string | null): void {
    const { context } = this.surface;
    let top = y + ROW - 3;
    for (const kind of [RUNNING, SPINNING, READY, LOCK, 5, 6, 7]) {
      const tall = (of[kind] / all) * (ROW - 6);
      if (tall < 0.05) continue;
      context.fillStyle = kind === RUNNING && running ? running : theme.states[kind];
      context.fillRect(GUTTER + x, top - tall, 1, tall);
      top -= tall;
    }
  }

  states(lane: number, y: number, shown: Shown): void {
    const { scale } = shown;
    const { lanes } = this.run;
    const [first, last] = lanes.range(lane, scale.from, scale.to);
    if (last - first > 2 * scale.pixels) {
      this.crowded(lane, y, shown);
      return;
    }
    for (let item = first; item < last; item++) this.item(lane, item, y, shown);
  }

  /** Draws more items than pixels: each pixel shows the shares of its time. */
  private crowded(lane: number, y: number, shown: Shown): void {
    const { scale, theme } = shown;
    const { lanes } = this.run;
    let before = new Float64Array(CLASSES.length);
    let after = new Float64Array(CLASSES.length);
    const between = new Float64Array(CLASSES.length);
    lanes.until(lane, scale.from, before);
    for (let x = 0; x < scale.pixels; x++) {
      const time = scale.from + x * scale.perPixel;
      lanes.until(lane, time + scale.perPixel, after);
      for (let of = 0; of < CLASSES.length; of++) between[of] = after[of] - before[of];
      const running = between[RUNNING] > 0 ? this.functionColour(lane, time + scale.perPixel / 2, time, time + scale.perPixel, theme) : null;
      this.shares(x, y, between, scale.perPixel, theme, running);
      [before, after] = [after, before];
    }
  }

  private item(lane: number, item: number, y: number, shown: Shown): void {
    const { scale, theme } = shown;
    const { lanes } = this.run;
    const kind = lanes.kindOf(item);
    if (kind === NONE) return;
    const { context } = this.surface;
    const [start, end] = [Math.max(lanes.start[item], scale.from), Math.min(lanes.endOf(lane, item), scale.to)];
    // The last item of a thread that ended before this range.
    if (end <= start) return;
    const [x, right] = [scale.x(start), scale.x(end)];
    const wide = Math.max(right - x, 0.5);
    const tall = kind === RUNNING || kind === SPINNING ? ROW - 6 : kind === READY ? ROW - 10 : ROW - 14;
    context.fillStyle = theme.states[kind];
    context.fillRect(x, y + 3 + (ROW - 6 - tall) / 2, wide, tall);
    if (kind === RUNNING) this.functions(lane, start, end, y, shown);
    else if (wide > 40) {
      const state = this.model.doc.states[lanes.code[item]];
      const what = state.object === undefined ? state.reason ?? state.state : this.model.object(state.object);
      context.fillStyle = theme.text;
      context.fillText(fitted(context, what, wide - 6), x + 3, y + ROW / 2);
    }
  }

  /** Colours computing by function: for each sample or call, if there is room. */
  private functions(lane: number, start: number, end: number, y: number, shown: Shown): void {
    const { scale, theme } = shown;
    const { context } = this.surface;
    const pixels = Math.max(1, Math.ceil(scale.x(end) - scale.x(start)));
    let begun = scale.x(start);
    let name: string | null = null;
    const flush = (x: number): void => {
      if (name === null || x <= begun) return;
      context.fillStyle = functionColour(theme, name);
      context.fillRect(begun, y + 3, Math.max(x - begun, 0.5), ROW - 6);
      if (x - begun > 40) {
        context.fillStyle = "#ffffff";
        context.fillText(fitted(context, short(name), x - begun - 6), begun + 3, y + ROW / 2);
      }
    };
    for (let pixel = 0; pixel < pixels; pixel += 2) {
      const time = Math.min(start + (pixel + 1) * scale.perPixel, (start + end) / 2 + (pixels / 2) * scale.perPixel);
      const next = this.functionAt(lane, Math.min(time, end), start, end);
      if (next === name) continue;
      const x = scale.x(start) + pixel;
      flush(x);
      [name, begun] = [next, x];
    }
    flush(scale.x(end));
  }

  private functionColour(lane: number, time: number, from: number, to: number, theme: Theme): string | null {
    const name = this.functionAt(lane, time, from, to);
    return name === null ? null : functionColour(theme, name);
  }

  /** The innermost function of the call at a time, or of the nearest sample in a range. */
  functionAt(lane: number, time: number, from: number, to: number): string | null {
    const { calls, samples } = this.run;
    if (samples) {
      const sample = sampleNear(samples, lane, time, from, to);
      const innermost = sample < 0 ? undefined : this.model.innermost(samples.stack[sample]);
      if (innermost !== undefined) return this.model.functionName(innermost);
    }
    if (calls) {
      for (let call = lastAt(calls, lane, time); call >= 0; call = calls.parent[call]) {
        if (calls.time[call] + calls.length[call] > time) return this.model.functionName(calls.function[call]);
      }
    }
    return null;
  }

  /** Draws locks below the states: held locks as lines, and waits for locks as dashes. */
  locks(lane: number, y: number, shown: Shown): void {
    const { sections } = this.run;
    if (!sections) return;
    const { context } = this.surface;
    const { scale, theme } = shown;
    let drawn = 0;
    const before = lastAt(sections, lane, scale.from);
    for (let i = Math.max(before, sections.first[lane]); i < sections.first[lane + 1]; i++) {
      const taken = sections.time[i];
      if (taken - sections.waited[i] > scale.to) break;
      const [wait, x, right] = [scale.x(taken - sections.waited[i]), scale.x(taken), scale.x(taken + sections.held[i])];
      if (right < GUTTER || right <= drawn + 0.5) continue;
      drawn = right;
      context.fillStyle = theme.text;
      context.fillRect(Math.max(x, GUTTER), y + ROW - 4, Math.max(right - Math.max(x, GUTTER), 0.7), 2.5);
      for (let dash = Math.max(wait, GUTTER); dash < Math.min(x, scale.width); dash += 5) {
        context.fillRect(dash, y + ROW - 3, Math.min(2.5, x - dash), 1);
      }
    }
  }
}
