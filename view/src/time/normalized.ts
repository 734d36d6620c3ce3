// Normalized processor time in a range of a run: time divided by the number of threads that compute at the same time
// (Quartz, 1989). `longpole parallelism` computes the same for the whole run.

import { RUNNING, type Run } from "./run";

/** Largest number of changes. More would take too long while the user drags a range. */
const MOST = 400_000;

export interface Normalized {
  /** The normalized time of each lane, in nanoseconds. */
  lanes: Float64Array;
  /** The number of threads that compute at a time. */
  computing(time: number): number;
}

/** Null if the range has too many changes. */
export function normalized(run: Run, from: number, to: number): Normalized | null {
  const { lanes } = run;
  const [starts, ends, of]: number[][] = [[], [], []];
  for (let lane = 0; lane < lanes.count; lane++) {
    const [first, last] = lanes.range(lane, from, to);
    for (let item = first; item < last; item++) {
      if (lanes.kindOf(item) !== RUNNING) continue;
      const [start, end] = [Math.max(lanes.start[item], from), Math.min(lanes.endOf(lane, item), to)];
      if (end <= start) continue;
      starts.push(start);
      ends.push(end);
      of.push(lane);
    }
    if (starts.length > MOST / 2) return null;
  }
  // All changes ordered by time. For each, the normalized time so far of a thread that has computed without a pause.
  const [rises, falls] = [Float64Array.from(starts).sort(), Float64Array.from(ends).sort()];
  const times = new Float64Array(rises.length + falls.length);
  const counts = new Float64Array(times.length);
  const had = new Float64Array(times.length);
  for (let at = 0, rise = 0, fall = 0; at < times.length; at++) {
    const isRise = rise < rises.length && rises[rise] < falls[fall];
    times[at] = isRise ? rises[rise++] : falls[fall++];
    counts[at] = rise - fall;
    had[at] = at === 0 ? 0 : had[at - 1] + (counts[at - 1] > 0 ? (times[at] - times[at - 1]) / counts[at - 1] : 0);
  }
  /** Index of the last change at or before this time. */
  const before = (time: number): number => {
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };
  const sums = new Float64Array(lanes.count);
  for (let run = 0; run < starts.length; run++) sums[of[run]] += had[before(ends[run])] - had[before(starts[run])];
  return { lanes: sums, computing: (time) => Math.max(1, counts[before(time)] ?? 1) };
}
