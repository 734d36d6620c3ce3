// Lanes: for each thread, items that follow one another in time. Sums over any range are fast, however many items there
// are.

import type { Data } from "../data";

/** Number of items in a block with precomputed sums. */
const BLOCK = 64;

export class Lanes {
  readonly count: number;
  /** Index of the first item of each lane, and of the end of the last lane. */
  readonly first: Uint32Array;
  /** Start of each item, in nanoseconds since the beginning of the run. */
  readonly start: Float64Array;
  /** End of each lane, in nanoseconds. */
  readonly end: Float64Array;
  readonly code: Uint32Array;
  readonly more: Uint32Array;
  readonly isSum: Uint8Array;
  private readonly kinds: Uint8Array;
  private readonly classes: number;
  private readonly firstBlock: Uint32Array;
  private readonly blocks: Float64Array;

  /** `kinds` has the class of each code, a number below `classes`. */
  constructor(data: Data, name: string, kinds: Uint8Array, classes: number) {
    const counts = data.column(`${name}.counts`);
    const starts = data.column(`${name}.starts`);
    const codes = data.column(`${name}.codes`);
    const lengths = data.column(`${name}.lengths`);
    this.count = counts.length;
    this.kinds = kinds;
    this.classes = classes;
    this.first = new Uint32Array(counts.length + 1);
    this.end = new Float64Array(counts.length);
    this.start = new Float64Array(codes.length);
    this.code = new Uint32Array(codes.length);
    this.isSum = new Uint8Array(codes.length);
    this.more = Uint32Array.from(data.column(`${name}.more`));
    this.firstBlock = new Uint32Array(counts.length + 1);
    for (let lane = 0, at = 0; lane < counts.length; lane++) {
      let time = starts[lane];
      for (const until = at + counts[lane]; at < until; at++) {
        this.start[at] = time;
        this.code[at] = Math.floor(codes[at] / 2);
        this.isSum[at] = codes[at] % 2;
        time += lengths[at];
      }
      this.first[lane + 1] = at;
      this.end[lane] = time;
      this.firstBlock[lane + 1] = this.firstBlock[lane] + Math.floor(counts[lane] / BLOCK) + 1;
    }
    this.blocks = this.summed();
  }

  private summed(): Float64Array {
    const { classes } = this;
    const blocks = new Float64Array(this.firstBlock[this.count] * classes);
    const sums = new Float64Array(classes);
    for (let lane = 0; lane < this.count; lane++) {
      sums.fill(0);
      let block = this.firstBlock[lane];
      for (let item = this.first[lane]; item < this.first[lane + 1]; item++) {
        if ((item - this.first[lane]) % BLOCK === 0) blocks.set(sums, block++ * classes);
        sums[this.kinds[this.code[item]]] += this.endOf(lane, item) - this.start[item];
      }
    }
    return blocks;
  }

  endOf(lane: number, item: number): number {
    return item + 1 < this.first[lane + 1] ? this.start[item + 1] : this.end[lane];
  }

  kindOf(item: number): number {
    return this.kinds[this.code[item]];
  }

  /** The last item of the lane that begins at or before this time; -1 if there is none. */
  at(lane: number, time: number): number {
    let low = this.first[lane];
    let high = this.first[lane + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1 < this.first[lane] ? -1 : low - 1;
  }

  /** The items of the lane that overlap a range: index of the first one, and index after the last one. */
  range(lane: number, from: number, to: number): [number, number] {
    const first = Math.max(this.at(lane, from), this.first[lane]);
    const last = this.at(lane, to);
    return [first, Math.max(first, last + 1)];
  }

  /** Computes how long the lane was in each class up to this time. */
  until(lane: number, time: number, sums: Float64Array): void {
    const item = this.at(lane, time);
    if (item < 0) {
      sums.fill(0);
      return;
    }
    const place = item - this.first[lane];
    const block = this.firstBlock[lane] + Math.floor(place / BLOCK);
    const { classes } = this;
    for (let of = 0; of < classes; of++) sums[of] = this.blocks[block * classes + of];
    for (let i = item - (place % BLOCK); i < item; i++) sums[this.kinds[this.code[i]]] += this.start[i + 1] - this.start[i];
    sums[this.kinds[this.code[item]]] += Math.min(time, this.endOf(lane, item)) - this.start[item];
  }

  /** How long the lane was in each class in a range. */
  sum(lane: number, from: number, to: number): Float64Array {
    const before = new Float64Array(this.classes);
    const after = new Float64Array(this.classes);
    this.until(lane, from, before);
    this.until(lane, to, after);
    for (let of = 0; of < this.classes; of++) after[of] -= before[of];
    return after;
  }
}

/** The average number of lanes in each class, for each of `bins` equally long parts of a range. */
export function levels(lanes: Lanes, only: readonly number[], from: number, to: number, bins: number, classes: number): Float32Array {
  const width = (to - from) / bins;
  const sums = new Float64Array(bins * classes);
  // Changes at which an item begins or ceases to cover whole bins.
  const whole = new Float64Array((bins + 1) * classes);
  if (!(width > 0)) return new Float32Array(bins * classes);
  for (const lane of only) {
    const [first, last] = lanes.range(lane, from, to);
    for (let item = first; item < last; item++) {
      const start = Math.max(lanes.start[item], from) - from;
      const end = Math.min(lanes.endOf(lane, item), to) - from;
      if (end <= start) continue;
      const of = lanes.kindOf(item);
      const a = Math.min(Math.floor(start / width), bins - 1);
      const b = Math.min(Math.floor(end / width), bins - 1);
      if (a === b) {
        sums[a * classes + of] += end - start;
        continue;
      }
      sums[a * classes + of] += (a + 1) * width - start;
      sums[b * classes + of] += end - b * width;
      whole[(a + 1) * classes + of] += 1;
      whole[b * classes + of] -= 1;
    }
  }
  const average = new Float32Array(bins * classes);
  for (let of = 0; of < classes; of++) {
    for (let bin = 0, covering = 0; bin < bins; bin++) {
      covering += whole[bin * classes + of];
      average[bin * classes + of] = sums[bin * classes + of] / width + covering;
    }
  }
  return average;
}
