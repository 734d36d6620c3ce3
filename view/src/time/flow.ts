// Draws the execution flow of a run: a row for each thread with its states, calls, locks and wakers, and the critical
// path.

import { arrows } from "./arrows";
import { fittedEnds, GUTTER, type Scale, type Surface } from "./canvas";
import { duration, short } from "../format";
import { LaneView } from "./laneview";
import type { Model } from "../model";
import { PathView } from "./pathview";
import { ROW, rows, type Row } from "./rows";
import { RUNNING, type Run } from "./run";
import { CALL, StackView } from "./stackview";
import type { Theme } from "../theme";

/** A stay of the path in a thread. */
export interface Stretch { lane: number; from: number; to: number }

export interface Shown {
  scale: Scale;
  theme: Theme;
  cpus: number;
  selection: [number, number] | null;
  marked: { lane: number; time: number } | null;
  /** Numbers of the threads that a search or a table has marked. */
  lit: ReadonlySet<number>;
  /** The path that a table has marked, at its place in the predicted run. */
  way: readonly Stretch[];
}

interface Placed { row: Row; top: number; height: number }

export class Flow {
  scroll = 0;
  readonly open = new Set<string>();
  private readonly deep = new Map<number, [number, number]>();
  private isPlaced = false;
  private placed: Placed[] = [];
  private content = 0;

  private readonly lanes: LaneView;
  private readonly stacks: StackView;
  private readonly paths: PathView;

  constructor(
    private readonly model: Model, readonly run: Run, private readonly kind: "measured" | "predicted",
    private readonly surface: Surface, length: number,
  ) {
    this.lanes = new LaneView(model, run, surface, length);
    this.stacks = new StackView(model, run, surface);
    this.paths = new PathView(model, surface);
  }

  private names(): string[] {
    return this.run.threads.map((thread) => this.model.thread(thread));
  }

  /** Shows or hides the calls below a thread's row. */
  toggle(row: Row): void {
    if (row.lane < 0) {
      if (!this.open.delete(row.title)) this.open.add(row.title);
    } else if (!this.deep.delete(row.lane)) {
      this.deep.set(row.lane, this.stacks.depth(row.lane));
    }
    this.isPlaced = false;
  }

  /** Opens the groups with these titles. */
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

  /** Height of all rows together. */
  get height(): number {
    this.place();
    return this.content;
  }

  scrollBy(pixels: number): void {
    this.scroll = Math.max(0, Math.min(this.scroll + pixels, this.content - this.surface.height));
  }

  /** Scrolls to a thread's row. */
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

  /** The row at this height of the canvas. */
  rowAt(y: number): Row | null {
    const at = y + this.scroll;
    return this.placed.find(({ top, height }) => at >= top && at < top + height)?.row ?? null;
  }

  /** Describes in one line what is at a point of the canvas. */
  tell(x: number, y: number, scale: Scale): string {
    const row = this.rowAt(y);
    if (!row || x < GUTTER || row.lane < 0) return row?.title ?? "";
    const { lanes } = this.run;
    const item = lanes.at(row.lane, scale.time(x));
    if (item < 0) return row.title;
    const state = this.model.doc.states[lanes.code[item]];
    const [from, to] = [lanes.start[item], lanes.endOf(row.lane, item)];
    const what = lanes.kindOf(item) === RUNNING ? this.lanes.functionAt(row.lane, scale.time(x), from, to) : state.object === undefined ? state.reason : this.model.object(state.object);
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
    const middles = this.middles(visible);
    if (this.kind === "measured") {
      const inSight = visible.filter(({ row }) => row.lane >= 0);
      arrows(this.run, this.surface, inSight.map(({ row }) => row.lane), middles, shown);
    } else {
      this.paths.draw(middles, shown);
      this.paths.way(middles, shown);
    }
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
    context.fillText(fittedEnds(context, title, GUTTER - 12), 6, y + ROW / 2);
    if (row.lane < 0) this.lanes.group(row, y, shown);
    else {
      this.lanes.states(row.lane, y, shown);
      this.lanes.locks(row.lane, y, shown);
      const deep = this.deep.get(row.lane);
      if (deep) {
        this.stacks.calls(row.lane, y + ROW, shown);
        this.stacks.stacks(row.lane, y + ROW + deep[0] * CALL + 2, shown);
      }
    }
    context.fillStyle = shown.theme.line;
    context.fillRect(0, y + height - 1, width, 0.5);
  }

  /** Heights of the middles of visible rows, by lane. All threads of a closed group have the height of the group's row. */
  private middles(visible: Placed[]): Map<number, number> {
    const middles = new Map<number, number>();
    for (const { row, top } of visible) {
      for (const lane of row.lane >= 0 ? [row.lane] : row.group ?? []) {
        if (!middles.has(lane) || row.lane >= 0) middles.set(lane, top - this.scroll + ROW / 2);
      }
    }
    return middles;
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
    // This line marks the end of the run. Anything drawn beyond it is not a part of the run.
    const end = scale.x(this.run.length);
    if (end < scale.width) {
      context.fillStyle = theme.line;
      context.fillRect(Math.max(end, GUTTER), 0, 1, height);
    }
  }
}
