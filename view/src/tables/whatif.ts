// Shows what changes gain. Every step of a slider has been simulated in advance, each change alone.

import { el } from "../dom";
import { duration, onCpus, percent, short } from "../format";
import type { Curve } from "../data";
import type { Model } from "../model";

/** Describes a step in words. */
export function words(curve: Curve, step: number): string {
  const { value } = curve.stops[step];
  if (step === 0) return "as it is";
  if (curve.kind === "lock") return `split in ${value}`;
  return value === 0 ? "without it" : `${percent(1 - value)} faster`;
}

export function gain(curve: Curve, step: number, cpus: number): { before: number; after: number; share: number } {
  const [before, after] = [curve.stops[0].times_ns[cpus], curve.stops[step].times_ns[cpus]];
  return { before, after, share: before > 0 ? (after - before) / before : 0 };
}

export function panel(model: Model, cpus: number): HTMLElement {
  const curves = [...model.doc.curves];
  const least = (curve: Curve) => Math.min(...curve.stops.map((_, step) => gain(curve, step, cpus).share));
  curves.sort((a, b) => least(a) - least(b));
  const note = curves.length
    ? `Each change alone, simulated on ${onCpus(model.doc.cpus[cpus])}. Time with several changes at once: longpole what-if.`
    : "Nothing was simulated here: no function or lock can be changed, or the recording is too large. Use longpole what-if.";
  return el("div", { class: "whatif" }, el("p", { class: "note" }, note), ...curves.map((curve) => slider(curve, cpus)));
}

function slider(curve: Curve, cpus: number): HTMLElement {
  const input = el("input", { type: "range", min: 0, max: curve.stops.length - 1, step: 1, value: 0, "aria-label": `change of ${curve.name}` });
  const output = el("output");
  const show = (): void => {
    const step = Number(input.value);
    const { before, after, share } = gain(curve, step, cpus);
    const by = share === 0 ? "" : ` (${share > 0 ? "+" : ""}${percent(share)})`;
    output.textContent = `${words(curve, step)}: ${duration(after)} instead of ${duration(before)}${by}`;
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", show);
  show();
  return el("label", { class: "change", title: curve.name }, el("span", {}, `${curve.kind} ${short(curve.name, 40)}`), input, output);
}
