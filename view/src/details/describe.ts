// Describes the item that the user clicked: facts, the thread that woke it, the holder of the object it waited for,
// stack and source.

import { holders, neighbour, stretchAt, woken, type Stretch } from "./causes";
import { duration, onCpus, percent } from "../format";
import type { Model } from "../model";
import { LOCK, openCalls, RUNNING, sampleNear, type Run } from "../time/run";
import type { Picked } from "../state";

export interface Fact { name: string; value: string; go?: Picked }
export interface Frame { name: string; location?: string; how: string }
export interface Description {
  title: string;
  item: { from: number; to: number };
  facts: Fact[];
  stack: Frame[];
  /** Why the item has no stack. */
  noStack?: string;
  stretch: Stretch | null;
  previous: Stretch | null;
  next: Stretch | null;
}

export function describe(model: Model, cpus: number, picked: Picked): Description | null {
  const run = model.run(picked.run, cpus);
  if (!run || picked.lane >= run.lanes.count) return null;
  const { lanes } = run;
  const item = lanes.at(picked.lane, picked.time);
  if (item < 0) return null;
  const [from, to] = [lanes.start[item], lanes.endOf(picked.lane, item)];
  if (picked.time > to) return null;
  const state = model.doc.states[lanes.code[item]];
  const what = state.cpu === undefined ? state.state : `${state.state} on CPU ${state.cpu}`;
  const facts: Fact[] = [
    { name: "thread", value: model.thread(run.threads[picked.lane]) },
    { name: "state", value: what },
    { name: "from", value: duration(from) },
    { name: "for", value: duration(to - from) },
  ];
  if (lanes.isSum[item]) {
    facts.push({ name: "note", value: `all that is ${state.state} among stretches shorter than ${duration(run.quantum)} here: their order is not kept` });
  }
  if (state.reason) facts.push({ name: "reason", value: state.idle ? `${state.reason} (nothing to do)` : state.reason });
  if (state.object !== undefined) facts.push({ name: "waits for", value: model.object(state.object) });
  facts.push(...ended(model, run, picked, item));
  facts.push(...locks(model, run, picked, item));
  const stretch = picked.run === "predicted" ? onPath(model, cpus, picked, run.threads[picked.lane]) : null;
  if (stretch) facts.push(...ofPath(model, cpus, stretch));
  const lane = model.path(cpus).isOne ? 0 : picked.lane;
  return {
    title: picked.run === "measured" ? "In the measured run" : `In the run predicted for ${onCpus(model.doc.cpus[cpus])}`,
    item: { from, to },
    facts,
    ...stackOf(model, run, picked, item),
    stretch,
    previous: stretch && neighbour(model, cpus, lane, stretch.item, -1),
    next: stretch && neighbour(model, cpus, lane, stretch.item, 1),
  };
}

/** The path at the time, if the path is in this thread or in no thread. */
function onPath(model: Model, cpus: number, picked: Picked, thread: number): Stretch | null {
  const found = stretchAt(model, cpus, picked.time, thread);
  return found && (found.thread === undefined || found.thread === thread) ? found : null;
}

function ofPath(model: Model, cpus: number, stretch: Stretch): Fact[] {
  const what = stretch.wait ?? model.functionName(stretch.function);
  const facts = [{ name: "critical path", value: `${what}, ${duration(stretch.to - stretch.from)}` }];
  if (!model.path(cpus).isOne) facts.push({ name: "weight", value: percent(stretch.weight) });
  return facts;
}

function ended(model: Model, run: Run, picked: Picked, item: number): Fact[] {
  const { lanes } = run;
  const time = lanes.endOf(picked.lane, item);
  const state = model.doc.states[lanes.code[item]];
  const facts: Fact[] = [];
  const waker = lanes.more[item] - 1;
  if (waker >= 0) {
    facts.push({ name: "woken by", value: model.thread(waker), go: { run: "measured", lane: waker, time } });
  } else if (state.ended_by) {
    facts.push({ name: "ended by", value: state.ended_by });
  }
  if (picked.run === "measured" && lanes.kindOf(item) === RUNNING) {
    const others = woken(run, run.threads[picked.lane], lanes.start[item], time);
    for (const { lane, time: when } of others.slice(0, 5)) {
      facts.push({ name: "wakes", value: model.thread(run.threads[lane]), go: { run: "measured", lane, time: when } });
    }
    if (others.length > 5) facts.push({ name: "wakes", value: `${others.length - 5} more` });
  }
  return facts;
}

function locks(model: Model, run: Run, picked: Picked, item: number): Fact[] {
  const { sections, lanes } = run;
  if (!sections) return [];
  const [from, to] = [lanes.start[item], lanes.endOf(picked.lane, item)];
  const state = model.doc.states[lanes.code[item]];
  const facts: Fact[] = [];
  if (lanes.kindOf(item) === LOCK && state.object !== undefined) {
    for (const holder of holders(sections, state.object, from, to, picked.lane).slice(0, 3)) {
      const go: Picked = { run: "measured", lane: holder.lane, time: Math.max(holder.from, from) };
      const value = `${model.thread(run.threads[holder.lane])}, ${duration(holder.overlap)} of this wait`;
      facts.push({ name: "held by", value, go });
    }
  }
  for (let i = sections.first[picked.lane]; i < sections.first[picked.lane + 1]; i++) {
    if (sections.time[i] > picked.time) break;
    if (sections.time[i] + sections.held[i] < picked.time) continue;
    const waited = sections.waited[i] > 0 ? `, waited ${duration(sections.waited[i])} for it` : "";
    const how = sections.reads[i] ? "reads under" : "holds";
    facts.push({ name: how, value: `${model.object(sections.object[i])} for ${duration(sections.held[i])}${waited}` });
  }
  return facts;
}

function stackOf(model: Model, run: Run, picked: Picked, item: number): { stack: Frame[]; noStack?: string } {
  const { samples, calls, lanes } = run;
  const [from, to] = [lanes.start[item], lanes.endOf(picked.lane, item)];
  const { functions, stacks, places } = model.doc.names;
  const sample = samples ? sampleNear(samples, picked.lane, picked.time, from, to) : -1;
  if (samples && sample >= 0) {
    const how = `sampled ${duration(Math.abs(samples.time[sample] - picked.time))} from here`;
    const stack = (stacks[samples.stack[sample]] ?? []).map((place) => {
      const [of, line] = places[place];
      const location = line ?? functions[of]?.location;
      return { name: model.functionName(of), how, ...(location ? { location } : {}) };
    });
    if (stack.length) return { stack };
  }
  const open = calls ? openCalls(calls, picked.lane, picked.time) : [];
  if (calls && open.length) {
    return {
      stack: open.map((call) => {
        const location = functions[calls.function[call]]?.location;
        return { name: model.functionName(calls.function[call]), how: "call recorded", ...(location ? { location } : {}) };
      }),
    };
  }
  const noStack = picked.run === "predicted" ? "A predicted run has no stacks: see the function on the critical path."
    : "No sample was taken and no recorded call was open here.";
  return { stack: [], noStack };
}

/** Source lines around a location, if the page contains them. */
export function source(model: Model, location: string): { number: number; text: string; here: boolean }[] {
  const at = location.lastIndexOf(":");
  const [file, line] = [location.slice(0, at), Number(location.slice(at + 1))];
  const lines = model.doc.sources[file];
  if (!lines) return [];
  const found = [];
  for (let number = line - 6; number <= line + 6; number++) {
    const text = lines[String(number)];
    if (text !== undefined) found.push({ number, text, here: number === line });
  }
  return found;
}
