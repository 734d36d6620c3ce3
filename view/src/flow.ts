// The execution flow of a run: a row for each thread, with what it does, its calls, its locks, who woke it; and the critical path.

import { fitted, GUTTER, Scale, type Surface } from "./canvas";
import { stretch } from "./causes";
import { functionColour, type Theme } from "./theme";
import type { Model } from "./model";
import { Series } from "./parallelism";
import { rows, type Row } from "./rows";
import { CLASSES, lastAt, LOCK, NONE, READY, RUNNING, sampleNear, SPINNING, type Run } from "./run";
import { duration, short } from "./format";

export const ROW = 22;
const CALL = 14;
/** Deeper calls have no room. */
const MOST_DEEP = 8;
/** More wake-ups in sight than this would be one black area. */
const MOST_ARROWS = 300;

export interface Shown {
  scale: Scale;
  theme: Theme;
  cpus: number;
  selection: [number, number] | null;
  marked: { lane: number; time: number } | null;
  /** Threads that a search or a table has marked, by number. */
  lit: ReadonlySet<number>;
}

interface Placed { row: Row; top: number; height: number }

export class Flow {
  scroll = 0;
  readonly open = new Set<string>();
  private readonly deep = new Map<number, [number, number]>();
  private isPlaced = false;
  private readonly series = new Map<string, Series>();
  private placed: Placed[] = [];
  private content = 0;

  constructor(
    private readonly model: Model, readonly run: Run, private readonly kind: "measured" | "predicted",
    private readonly surface: Surface, private readonly length: number,
  ) {}

  private names(): string[] {
    return this.run.threads.map((thread) => this.model.thread(thread));
  }

  /** Threads with their calls below them, or without. */
  toggle(row: Row): void {
    if (row.lane < 0) {
      if (!this.open.delete(row.title)) this.open.add(row.title);
    } else if (!this.deep.delete(row.lane)) {
      this.deep.set(row.lane, this.depth(row.lane));
    }
    this.isPlaced = false;
  }

  /** Opens these groups. */
  unfold(titles: Iterable<string>): void {
    for (const title of titles) this.open.add(title);
    this.isPlaced = false;
  }

  private place(): void {
    if (this.isPlaced) return;
    this.isPlaced = true;
    let top = 0;
    this.placed = rows(this.names(), this.open).map((row) => {
      const calls = this.deep.get(row.lane);
      const height = calls === undefined ? ROW : ROW + (calls[0] + calls[1]) * CALL + 4;
      const placed = { row, top, height };
      top += height;
      return placed;
    });
    this.content = top;
  }

  /** Rows below the thread's own: its recorded calls, then the stacks that samples saw. */
  private depth(lane: number): [number, number] {
    const { calls, samples } = this.run;
    let [called, sampled] = [0, 0];
    for (let call = calls?.first[lane] ?? 0; calls && call < calls.first[lane + 1]; call++) called = Math.max(called, calls.depth[call] + 1);
    for (let i = samples?.first[lane] ?? 0; samples && i < samples.first[lane + 1]; i++) {
      sampled = Math.max(sampled, this.model.doc.names.stacks[samples.stack[i]]?.length ?? 0);
    }
    return [Math.min(called, MOST_DEEP), Math.min(sampled, MOST_DEEP)];
  }

  /** Height of all rows. */
  get height(): number {
    this.place();
    return this.content;
  }

  scrollBy(pixels: number): void {
    this.scroll = Math.max(0, Math.min(this.scroll + pixels, this.content - this.surface.height));
  }

  /** Brings a thread's row into sight. */
  reveal(lane: number): void {
    this.place();
    if (!this.placed.some(({ row }) => row.lane === lane)) {
      const group = this.placed.find(({ row }) => row.group?.includes(lane));
      if (group) this.unfold([group.row.title]);
      this.place();
    }
    const found = this.placed.find(({ row }) => row.lane === lane);
    if (!found) return;
    if (found.top < this.scroll) this.scroll = found.top;
    const bottom = found.top + found.height;
    if (bottom > this.scroll + this.surface.height) this.scroll = bottom - this.surface.height;
  }

  /** The row at a height of the canvas. */
  rowAt(y: number): Row | null {
    const at = y + this.scroll;
    return this.placed.find(({ top, height }) => at >= top && at < top + height)?.row ?? null;
  }

  /** What is at a place of the canvas, in a line. */
  tell(x: number, y: number, scale: Scale): string {
    const row = this.rowAt(y);
    if (!row || x < GUTTER || row.lane < 0) return row?.title ?? "";
    const { lanes } = this.run;
    const item = lanes.at(row.lane, scale.time(x));
    if (item < 0) return row.title;
    const state = this.model.doc.states[lanes.code[item]];
    const [from, to] = [lanes.start[item], lanes.endOf(row.lane, item)];
    const what = lanes.kindOf(item) === RUNNING ? this.functionAt(row.lane, scale.time(x), from, to) : state.object === undefined ? state.reason : this.model.object(state.object);
    return `${row.title}: ${state.state}${what ? ` (${short(what)})` : ""}, ${duration(to - from)}`;
  }

  draw(shown: Shown, height: number): void {
    this.surface.fit(height);
    this.place();
    this.scrollBy(0);
    const { context, width } = this.surface;
    context.fillStyle = shown.theme.background;
    context.fillRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const visible = this.placed.filter(({ top, height: tall }) => top + tall > this.scroll && top < this.scroll + height);
    for (const placed of visible) this.row(placed, shown);
    if (this.kind === "measured") this.arrows(visible, shown);
    else this.path(visible, shown);
    this.overlay(shown, height);
  }

  private row({ row, top, height }: Placed, shown: Shown): void {
    const { context, width } = this.surface;
    const y = top - this.scroll;
    if (row.lane >= 0 && shown.lit.has(this.run.threads[row.lane])) {
      context.fillStyle = shown.theme.select;
      context.fillRect(0, y, width, height);
    }
    context.fillStyle = shown.theme.text;
    const title = row.lane < 0 ? `${this.open.has(row.title) ? "▾" : "▸"} ${row.title} ×${row.group?.length}` : row.title;
    context.fillText(fitted(context, title, GUTTER - 12), 6, y + ROW / 2);
    if (row.lane < 0) this.group(row, y, shown);
    else {
      this.states(row.lane, y, shown);
      this.locks(row.lane, y, shown);
      const deep = this.deep.get(row.lane);
      if (deep) {
        this.calls(row.lane, y + ROW, shown);
        this.stacks(row.lane, y + ROW + deep[0] * CALL + 2, shown);
      }
    }
    context.fillStyle = shown.theme.line;
    context.fillRect(0, y + height - 1, width, 0.5);
  }

  /** How many of a group's threads are in each class, over each pixel. */
  private group(row: Row, y: number, shown: Shown): void {
    let series = this.series.get(row.title);
    if (!series) this.series.set(row.title, (series = new Series(this.run, this.length, row.group ?? [])));
    const { scale, theme } = shown;
    const values = series.over(scale.from, scale.to, scale.pixels);
    // Most threads of a large group may not live yet, or no more.
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

  private states(lane: number, y: number, shown: Shown): void {
    const { scale } = shown;
    const { lanes } = this.run;
    const [first, last] = lanes.range(lane, scale.from, scale.to);
    if (last - first > 2 * scale.pixels) {
      this.crowded(lane, y, shown);
      return;
    }
    for (let item = first; item < last; item++) this.item(lane, item, y, shown);
  }

  /** More items than pixels: what share of each pixel's time went to what. */
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
    // The last item of a thread that has ended before.
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

  /** Colours what runs by function: at the finest by each sample or call. */
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

  /** The innermost function that a call shows at a time, or a sample next to it within a range. */
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

  private calls(lane: number, y: number, shown: Shown): void {
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

  /** Stacks that samples saw, the outermost function on top, each from half-way to the sample before to half-way to the next. */
  private stacks(lane: number, y: number, shown: Shown): void {
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

  /** Below the states: locks held (a line) and waited for (dashes). */
  private locks(lane: number, y: number, shown: Shown): void {
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

  private middle(visible: Placed[]): Map<number, number> {
    const middles = new Map<number, number>();
    for (const { row, top } of visible) {
      for (const lane of row.lane >= 0 ? [row.lane] : row.group ?? []) {
        if (!middles.has(lane) || row.lane >= 0) middles.set(lane, top - this.scroll + ROW / 2);
      }
    }
    return middles;
  }

  /** From who woke to who was woken. */
  private arrows(visible: Placed[], shown: Shown): void {
    const { scale, theme } = shown;
    const { lanes } = this.run;
    const middles = this.middle(visible);
    const arrows: [number, number, number][] = [];
    for (const { row } of visible) {
      if (row.lane < 0) continue;
      const [first, last] = lanes.range(row.lane, scale.from, scale.to);
      if (last - first > 4 * MOST_ARROWS) return;
      for (let item = first; item < last; item++) {
        const waker = lanes.more[item] - 1;
        const time = lanes.endOf(row.lane, item);
        if (waker >= 0 && time <= scale.to) arrows.push([waker, row.lane, time]);
      }
    }
    if (arrows.length > MOST_ARROWS) return;
    const { context } = this.surface;
    context.strokeStyle = context.fillStyle = theme.dim;
    context.lineWidth = 1;
    for (const [waker, wakee, time] of arrows) {
      const [from, to] = [middles.get(waker), middles.get(wakee)];
      if (from === undefined || to === undefined || from === to) continue;
      const [x, head] = [scale.x(time), to > from ? -5 : 5];
      context.beginPath();
      context.moveTo(x, from);
      context.lineTo(x, to);
      context.stroke();
      context.beginPath();
      context.moveTo(x, to);
      context.lineTo(x - 3, to + head);
      context.lineTo(x + 3, to + head);
      context.fill();
    }
  }

  /** The critical path over the rows of its threads: thick, as strong as its weight; what is negative in another colour. */
  private path(visible: Placed[], shown: Shown): void {
    const { scale, cpus } = shown;
    const path = this.model.path(cpus);
    const middles = this.middle(visible);
    for (let lane = 0; lane < path.lanes.count; lane++) {
      const [first, last] = path.lanes.range(lane, scale.from, scale.to);
      if (last - first > scale.pixels / 3) this.crowdedPath(lane, first, last, middles, shown);
      else this.pathItems(lane, first, last, middles, shown);
    }
    this.surface.context.globalAlpha = 1;
  }

  private pathItems(lane: number, first: number, last: number, middles: Map<number, number>, shown: Shown): void {
    const { scale, theme, cpus } = shown;
    const { context } = this.surface;
    const { isOne } = this.model.path(cpus);
    let before: { y: number; x: number } | null = null;
    for (let item = first; item < last; item++) {
      const found = stretch(this.model, cpus, lane, item);
      const y = found?.thread === undefined ? undefined : middles.get(found.thread);
      if (!found || y === undefined) continue;
      const [x, right] = [Math.max(scale.x(found.from), GUTTER), Math.min(scale.x(found.to), scale.width)];
      context.globalAlpha = Math.min(1, Math.max(0.15, Math.abs(found.weight)));
      context.fillStyle = context.strokeStyle = found.weight < 0 ? theme.negative : theme.path;
      context.fillRect(x, y - 3, Math.max(right - x, 1), 6);
      if (found.weight < 0 && right - x > 12) {
        context.fillStyle = theme.background;
        context.fillText("−", x + 3, y);
      }
      if (before && isOne && before.y !== y) {
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(before.x, before.y);
        context.lineTo(x, y);
        context.stroke();
      }
      before = { y, x: right };
    }
  }

  /** More stretches than can be told apart: for each pixel of a row as thick as the path's share of the time. */
  private crowdedPath(lane: number, first: number, last: number, middles: Map<number, number>, shown: Shown): void {
    const { scale, theme, cpus } = shown;
    const sums = new Map<number, Float32Array>();
    for (let item = first; item < last; item++) {
      const found = stretch(this.model, cpus, lane, item);
      const y = found?.thread === undefined ? undefined : middles.get(found.thread);
      if (!found || y === undefined) continue;
      let row = sums.get(y);
      if (!row) sums.set(y, (row = new Float32Array(scale.pixels + 1)));
      const [x, right] = [Math.max(scale.x(found.from) - GUTTER, 0), Math.min(scale.x(found.to) - GUTTER, scale.pixels)];
      for (let pixel = Math.floor(x); pixel < right; pixel++) row[pixel] += (Math.min(right, pixel + 1) - Math.max(x, pixel)) * found.weight;
    }
    const { context } = this.surface;
    for (const [y, row] of sums) {
      for (let pixel = 0; pixel < scale.pixels; pixel++) {
        const thick = Math.min(1, Math.abs(row[pixel])) * 10;
        if (thick < 0.3) continue;
        context.fillStyle = row[pixel] < 0 ? theme.negative : theme.path;
        context.fillRect(GUTTER + pixel, y - thick / 2, 1, thick);
      }
    }
  }

  private overlay(shown: Shown, height: number): void {
    const { context } = this.surface;
    const { scale, theme, selection, marked } = shown;
    if (selection) {
      const [x, right] = selection.map((time) => Math.min(Math.max(scale.x(time), GUTTER), scale.width));
      context.fillStyle = theme.select;
      context.fillRect(x, 0, right - x, height);
    }
    const placed = marked && this.placed.find(({ row }) => row.lane === marked.lane);
    if (marked && placed) {
      const item = this.run.lanes.at(marked.lane, marked.time);
      if (item < 0) return;
      const x = Math.max(scale.x(this.run.lanes.start[item]), GUTTER);
      const right = Math.min(scale.x(this.run.lanes.endOf(marked.lane, item)), scale.width);
      if (right < GUTTER) return;
      context.strokeStyle = theme.text;
      context.lineWidth = 2;
      context.strokeRect(x - 1, placed.top - this.scroll + 1, Math.max(right - x, 2) + 2, ROW - 3);
    }
    // What has run past the end of this run is no part of it.
    const end = scale.x(this.run.length);
    if (end < scale.width) {
      context.fillStyle = theme.line;
      context.fillRect(Math.max(end, GUTTER), 0, 1, height);
    }
  }
}
