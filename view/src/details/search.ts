// Searches names of threads, functions and locks, and finds where each can be shown.

import type { Model } from "../model";

export interface Hit { kind: "thread" | "function" | "lock"; name: string; number: number }

export const MOST_HITS = 50;

export function search(model: Model, text: string): Hit[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const { threads, functions, objects } = model.doc.names;
  const hits: Hit[] = [];
  const add = (kind: Hit["kind"], names: Iterable<string>): void => {
    let number = 0;
    for (const name of names) {
      if (hits.length >= MOST_HITS) return;
      if (name.toLowerCase().includes(wanted)) hits.push({ kind, name, number });
      number++;
    }
  };
  add("thread", threads.map((thread) => thread.name));
  add("function", functions.map((of) => of.name));
  add("lock", objects);
  return hits;
}

/** The lane and the time at which the thread, function or lock is next active in the measured run. After the end, the
 * search continues from the beginning. */
export function occurrence(model: Model, hit: Hit, after: number): { lane: number; time: number } | null {
  const run = model.measured;
  if (!run) return null;
  if (hit.kind === "thread") {
    const lane = run.threads.indexOf(hit.number);
    return lane < 0 ? null : { lane, time: run.lanes.start[run.lanes.first[lane]] ?? 0 };
  }
  const { calls, samples, sections } = run;
  let [best, first]: ({ lane: number; time: number } | null)[] = [null, null];
  const consider = (lane: number, time: number): void => {
    if (!first || time < first.time) first = { lane, time };
    if (time > after && (!best || time < best.time)) best = { lane, time };
  };
  for (let lane = 0; lane < run.lanes.count; lane++) {
    if (hit.kind === "lock" && sections) {
      for (let i = sections.first[lane]; i < sections.first[lane + 1]; i++) if (sections.object[i] === hit.number) consider(lane, sections.time[i]);
    }
    if (hit.kind === "function" && calls && samples) {
      for (let i = calls.first[lane]; i < calls.first[lane + 1]; i++) if (calls.function[i] === hit.number) consider(lane, calls.time[i]);
      for (let i = samples.first[lane]; i < samples.first[lane + 1]; i++) {
        const places = model.doc.names.stacks[samples.stack[i]] ?? [];
        if (places.some((place) => model.doc.names.places[place][0] === hit.number)) consider(lane, samples.time[i]);
      }
    }
  }
  return best ?? first;
}
