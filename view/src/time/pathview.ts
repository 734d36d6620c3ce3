// Draws the critical path of the predicted run over the rows of its threads, and another path that is nearly as long.

import { GUTTER, type Surface } from "./canvas";
import { stretch } from "../details/causes";
import type { Shown } from "./flow";
import type { Model } from "../model";

/** Heights of the visible rows, by lane. */
type Middles = ReadonlyMap<number, number>;

export class PathView {
  constructor(private readonly model: Model, private readonly surface: Surface) {}

  /** Draws the critical path over the rows of its threads, in thick lines. The weight decides the opacity; negative
   * weights have another colour. */
  draw(middles: Middles, shown: Shown): void {
    const { scale, cpus } = shown;
    const path = this.model.path(cpus);
    for (let lane = 0; lane < path.lanes.count; lane++) {
      const [first, last] = path.lanes.range(lane, scale.from, scale.to);
      if (last - first > scale.pixels / 3) this.crowdedPath(lane, first, last, middles, shown);
      else this.pathItems(lane, first, last, middles, shown);
    }
    this.surface.context.globalAlpha = 1;
  }

  private pathItems(lane: number, first: number, last: number, middles: Middles, shown: Shown): void {
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

  /** Draws stretches that are too many for separate lines. In each pixel, the line of a row is as thick as the path's
   * share of the time. */
  private crowdedPath(lane: number, first: number, last: number, middles: Middles, shown: Shown): void {
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

  /** Draws a path on unlimited CPUs as an outline from thread to thread, with each stay as early as the path allows. */
  way(middles: Middles, shown: Shown): void {
    const { scale, theme, way } = shown;
    const { context } = this.surface;
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    let before: { y: number; x: number } | null = null;
    for (const { lane, from, to } of way) {
      const y = middles.get(lane);
      if (y === undefined || to < scale.from || from > scale.to) {
        before = null;
        continue;
      }
      const [x, right] = [Math.max(scale.x(from), GUTTER), Math.min(scale.x(to), scale.width)];
      context.strokeRect(x, y - 6, Math.max(right - x, 1), 12);
      if (before && before.y !== y) {
        context.beginPath();
        context.moveTo(before.x, before.y);
        context.lineTo(x, y);
        context.stroke();
      }
      before = { y, x: right };
    }
  }
}
