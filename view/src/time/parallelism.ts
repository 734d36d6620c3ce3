// The graph from VPPB's Visualizer: the number of threads that run, spin and are ready, over time.

import { fitted, GUTTER, Scale, step, type Surface } from "./canvas";
import { instant } from "../format";
import { levels } from "./lanes";
import { CLASSES, READY, RUNNING, SPINNING, type Run } from "./run";
import type { Theme } from "../theme";

const HEIGHT = 96;
const AXIS = 20;
/** Number of precomputed bins of the whole run. While a pixel covers more time than a bin, no item has to be read again. */
const BINS = 16384;

export class Series {
  private readonly all: Float32Array;
  private readonly lanes: number[];

  constructor(readonly run: Run, readonly length: number, lanes?: number[]) {
    this.lanes = lanes ?? run.threads.map((_, lane) => lane);
    this.all = levels(run.lanes, this.lanes, 0, length, BINS, CLASSES.length);
  }

  /** The averages for each pixel. */
  over(from: number, to: number, bins: number): Float32Array {
    const width = this.length / BINS;
    if ((to - from) / bins < 2 * width) return levels(this.run.lanes, this.lanes, from, to, bins, CLASSES.length);
    const average = new Float32Array(bins * CLASSES.length);
    for (let bin = 0; bin < bins; bin++) {
      const first = Math.max(0, Math.floor((from + (bin * (to - from)) / bins) / width));
      const last = Math.min(BINS, Math.max(first + 1, Math.floor((from + ((bin + 1) * (to - from)) / bins) / width)));
      for (let of = 0; of < CLASSES.length; of++) {
        let sum = 0;
        for (let i = first; i < last; i++) sum += this.all[i * CLASSES.length + of];
        average[bin * CLASSES.length + of] = sum / Math.max(1, last - first);
      }
    }
    return average;
  }
}

/** Draws the numbers above one another: running, spinning, ready. */
export function draw(surface: Surface, series: Series, scale: Scale, theme: Theme, title: string): void {
  surface.fit(HEIGHT);
  const { context, width } = surface;
  const floor = HEIGHT - AXIS;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, HEIGHT);
  const values = series.over(scale.from, scale.to, scale.pixels);
  const kinds = [RUNNING, SPINNING, READY];
  let most = 1;
  for (let x = 0; x < scale.pixels; x++) {
    most = Math.max(most, kinds.reduce((sum, kind) => sum + values[x * CLASSES.length + kind], 0));
  }
  const unit = (floor - 6) / most;
  for (let x = 0; x < scale.pixels; x++) {
    let top = floor;
    for (const kind of kinds) {
      const height = values[x * CLASSES.length + kind] * unit;
      context.fillStyle = theme.states[kind];
      context.fillRect(GUTTER + x, top - height, 1, height);
      top -= height;
    }
  }
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = theme.text;
  context.fillText(title, 6, 14);
  context.fillStyle = theme.dim;
  const count = most < 10 ? Number(most.toFixed(1)) : Math.round(most);
  context.fillText(fitted(context, GUTTER < 100 ? `up to ${count}` : `at most ${count} ${count === 1 ? "thread" : "threads"}`, GUTTER - 8), 6, 32);
  axis(surface, scale, theme, floor);
}

function axis(surface: Surface, scale: Scale, theme: Theme, top: number): void {
  const { context, width } = surface;
  const distance = step(scale);
  context.strokeStyle = theme.line;
  context.fillStyle = theme.dim;
  context.beginPath();
  context.moveTo(GUTTER, top + 0.5);
  context.lineTo(width, top + 0.5);
  for (let mark = Math.ceil(scale.from / distance) * distance; mark <= scale.to; mark += distance) {
    const x = Math.round(scale.x(mark)) + 0.5;
    context.moveTo(x, top);
    context.lineTo(x, top + 5);
    const text = instant(mark, distance);
    if (x + 3 + context.measureText(text).width <= width) context.fillText(text, x + 3, top + 11);
  }
  context.stroke();
}
