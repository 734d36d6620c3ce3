// A run in the form that the pictures need: lanes of threads, calls, samples, lock sections, and names of threads.

import type { Data, StateColour } from "../data";
import { Lanes } from "./lanes";

export const CLASSES = ["none", "running", "spinning", "ready", "lock", "waiting", "idle", "unknown"] as const;
export type Class = (typeof CLASSES)[number];
export const [NONE, RUNNING, SPINNING, READY, LOCK, WAITING, IDLE, UNKNOWN] = CLASSES.map((_, number) => number);

export function classOf(state: StateColour): number {
  switch (state.state) {
    case "running": return RUNNING;
    case "spinning": return SPINNING;
    case "ready": return READY;
    case "blocked": return state.idle ? IDLE : state.lock ? LOCK : WAITING;
    case "unknown": return UNKNOWN;
    default: return NONE;
  }
}

/** A list for each lane, ordered by time. */
export interface Lists { first: Uint32Array; time: Float64Array }

function lists(data: Data, name: string): Lists {
  const counts = data.column(`${name}.counts`);
  const times = data.column(`${name}.times`);
  const first = new Uint32Array(counts.length + 1);
  const time = new Float64Array(times.length);
  for (let lane = 0, at = 0; lane < counts.length; lane++) {
    let now = 0;
    for (const until = at + counts[lane]; at < until; at++) {
      now += times[at];
      time[at] = now;
    }
    first[lane + 1] = at;
  }
  return { first, time };
}

/** Index of the last entry at or before this time; -1 if there is none. */
export function lastAt(list: Lists, lane: number, time: number): number {
  let low = list.first[lane];
  let high = list.first[lane + 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list.time[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1 < list.first[lane] ? -1 : low - 1;
}

export interface Calls extends Lists {
  length: Float64Array; depth: Uint32Array;
  /** Index of the function's name; -1 if the function is unknown. */
  function: Int32Array;
  /** Index of the call that contains this one; -1 if there is none. */
  parent: Int32Array;
}
export interface Samples extends Lists { stack: Uint32Array }
export interface Sections extends Lists { held: Float64Array; waited: Float64Array; object: Uint32Array; reads: Uint8Array }

export interface Run {
  lanes: Lanes;
  length: number;
  quantum: number;
  /** For each lane, the index of its thread among the names. */
  threads: number[];
  calls?: Calls;
  samples?: Samples;
  sections?: Sections;
}

export function measuredRun(data: Data): Run | null {
  const run = data.doc.measured;
  if (!run) return null;
  const numbers = new Map(data.doc.names.functions.map((of, number) => [of.name, number]));
  const functions = run.functions.map((name) => numbers.get(name) ?? -1);
  const objects = data.column("sections.objects");
  return {
    lanes: new Lanes(data, "measured", kinds(data), CLASSES.length),
    length: run.length_ns,
    quantum: run.quantum_ns,
    threads: run.threads.map((thread) => thread.thread),
    calls: calls(data, functions),
    samples: { ...lists(data, "samples"), stack: Uint32Array.from(data.column("samples.stacks")) },
    sections: {
      ...lists(data, "sections"),
      held: data.column("sections.held"),
      waited: data.column("sections.waited"),
      object: Uint32Array.from(objects, (code) => Math.floor(code / 2)),
      reads: Uint8Array.from(objects, (code) => code % 2),
    },
  };
}

export function predictedRun(data: Data, place: number): Run {
  const run = data.doc.predicted[place];
  const lanes = new Lanes(data, `predicted${place}`, kinds(data), CLASSES.length);
  return {
    lanes, length: run?.length_ns ?? 0, quantum: run?.quantum_ns ?? 0,
    threads: data.doc.names.threads.map((_, number) => number),
  };
}

function kinds(data: Data): Uint8Array {
  return Uint8Array.from(data.doc.states, classOf);
}

function calls(data: Data, functions: number[]): Calls {
  const list = lists(data, "calls");
  const length = data.column("calls.lengths");
  const depth = Uint32Array.from(data.column("calls.depths"));
  const of = Int32Array.from(data.column("calls.functions"), (number) => functions[number] ?? -1);
  const parent = new Int32Array(length.length).fill(-1);
  for (let lane = 0; lane + 1 < list.first.length; lane++) {
    const open: number[] = [];
    for (let call = list.first[lane]; call < list.first[lane + 1]; call++) {
      while (open.length && depth[open[open.length - 1]] >= depth[call]) open.pop();
      parent[call] = open.length ? open[open.length - 1] : -1;
      open.push(call);
    }
  }
  return { ...list, length, depth, function: of, parent };
}

/** The calls that were open at a time, innermost first. */
export function openCalls(calls: Calls, lane: number, time: number): number[] {
  const open: number[] = [];
  for (let call = lastAt(calls, lane, time); call >= 0; call = calls.parent[call]) {
    if (calls.time[call] + calls.length[call] > time) open.push(call);
  }
  return open;
}

/** The sample of a lane in a range that is nearest to a time; -1 if there is none. */
export function sampleNear(samples: Samples, lane: number, time: number, from: number, to: number): number {
  const before = lastAt(samples, lane, time);
  const next = before < 0 ? samples.first[lane] : before + 1;
  const has = (sample: number): boolean => sample >= samples.first[lane] && sample < samples.first[lane + 1]
    && samples.time[sample] >= from && samples.time[sample] <= to;
  if (!has(before)) return has(next) ? next : -1;
  return has(next) && samples.time[next] - time < time - samples.time[before] ? next : before;
}
