// Shows the item that the user clicked, as elements of the page.

import { describe, source } from "./describe";
import { button, el } from "../dom";
import { duration, fileName } from "../format";
import type { Model } from "../model";
import type { Picked, State } from "../state";
import type { Stretch } from "./causes";

const HELP = "Click anything in the pictures to see what it is, which thread woke it, what it waited for, the holder, its stack and its source.";
const KEYS = "W S zoom, A D move, drag to move, shift and drag to select a range, [ and ] go along the critical path.";

export function detailView(model: Model, state: State, go: (to: Picked) => void, follow: (stretch: Stretch) => void): Node[] {
  const found = state.picked && describe(model, state.cpus, state.picked);
  if (!found) return [el("h2", {}, "Details"), el("p", { class: "note" }, HELP), el("p", { class: "note" }, KEYS)];
  const facts = found.facts.flatMap(({ name, value, go: target }) => [
    el("dt", {}, name),
    el("dd", {}, target ? button(value, () => go(target), { class: "link" }) : value),
  ]);
  const step = (text: string, stretch: Stretch | null) => {
    const made = button(text, () => stretch && follow(stretch));
    made.disabled = !stretch;
    if (stretch) made.title = `${stretch.wait ?? model.functionName(stretch.function)}, ${duration(stretch.to - stretch.from)}`;
    return made;
  };
  const walk = state.picked?.run === "predicted" && el("p", { class: "walk" }, step("◂ previous cause", found.previous), " ", step("next cause ▸", found.next));
  return [
    el("h2", {}, found.title), el("dl", {}, ...facts), ...(walk ? [walk] : []),
    el("h3", {}, "Stack"),
    found.stack.length
      ? el("ol", { class: "stack" }, ...found.stack.slice(0, 60).map((frame) => el("li", { title: frame.name }, frame.name, frame.location && el("span", { class: "where" }, ` ${fileName(frame.location)}`))))
      : el("p", { class: "note" }, found.noStack ?? ""),
    ...(found.stack.length ? [el("p", { class: "note" }, found.stack[0].how)] : []),
    ...sources(model, found.stack.flatMap((frame) => (frame.location ? [frame.location] : []))),
  ];
}

function sources(model: Model, locations: string[]): Node[] {
  const first = locations.find((location) => source(model, location).length > 0);
  if (!first) return locations.length ? [el("p", { class: "note" }, "Source lines: longpole view --sources.")] : [];
  const lines = source(model, first).map((line) => el("li", { value: line.number, class: line.here ? "here" : "" }, line.text));
  return [el("h3", {}, fileName(first)), el("ol", { class: "source" }, ...lines)];
}
