// Finds the next event: along the critical path, and from a wait to the thread that ended it and the thread that held
// the lock.

import type { Model } from "../model";
import { LOCK, type Run, type Sections } from "../time/run";

export interface Stretch { item: number; from: number; to: number; thread?: number; function?: number; wait?: string; weight: number }

/** The stretch of the critical path at a time. On a path with weights, the stretch in this thread. */
export function stretchAt(model: Model, cpus: number, time: number, thread: number): Stretch | null {
  const path = model.path(cpus);
  const lane = path.isOne ? 0 : thread;
  if (lane >= path.lanes.count) return null;
  const item = path.lanes.at(lane, Math.max(time, 0));
  return item < 0 || time >= path.lanes.end[lane] ? null : stretch(model, cpus, lane, item);
}

export function stretch(model: Model, cpus: number, lane: number, item: number): Stretch | null {
  const { lanes, weights, isOne } = model.path(cpus);
  if (item < lanes.first[lane] || item >= lanes.first[lane + 1]) return null;
  const colour = model.doc.path_colours[lanes.code[item]] ?? {};
  const isGap = colour.thread === undefined && colour.wait === undefined;
  if (isGap) return null;
  const found: Stretch = {
    item, from: lanes.start[item], to: lanes.endOf(lane, item), weight: isOne ? 1 : weights[lanes.more[item]] ?? 0,
  };
  return { ...found, ...colour };
}

/** The stretch of the path before (-1) or after (+1) an item. On a path with weights, the stretch in the same thread. */
export function neighbour(model: Model, cpus: number, lane: number, item: number, step: -1 | 1): Stretch | null {
  const { lanes } = model.path(cpus);
  for (let next = item + step; next >= lanes.first[lane] && next < lanes.first[lane + 1]; next += step) {
    const found = stretch(model, cpus, lane, next);
    if (found) return found;
  }
  return null;
}

export interface Holder { lane: number; from: number; overlap: number }

/** The threads that held an object in a range, when each first held it, and for how long; longest first. */
export function holders(sections: Sections, object: number, from: number, to: number, except: number): Holder[] {
  const found: Holder[] = [];
  for (let lane = 0; lane + 1 < sections.first.length; lane++) {
    if (lane === except) continue;
    let holder: Holder | null = null;
    for (let i = sections.first[lane]; i < sections.first[lane + 1]; i++) {
      if (sections.time[i] >= to) break;
      if (sections.object[i] !== object) continue;
      const overlap = Math.min(sections.time[i] + sections.held[i], to) - Math.max(sections.time[i], from);
      if (overlap <= 0) continue;
      holder ??= { lane, from: sections.time[i], overlap: 0 };
      holder.overlap += overlap;
    }
    if (holder) found.push(holder);
  }
  return found.sort((a, b) => b.overlap - a.overlap);
}

/** Waits that a wake-up by this thread ended in a range: the waiting thread and the time. */
export function woken(run: Run, thread: number, from: number, to: number): { lane: number; time: number }[] {
  const found: { lane: number; time: number }[] = [];
  for (let lane = 0; lane < run.lanes.count; lane++) {
    const [first, last] = run.lanes.range(lane, from, to);
    for (let item = first; item < last && found.length < 50; item++) {
      const time = run.lanes.endOf(lane, item);
      if (run.lanes.more[item] === thread + 1 && run.lanes.kindOf(item) >= LOCK && time >= from && time <= to) {
        found.push({ lane, time });
      }
    }
  }
  return found;
}
