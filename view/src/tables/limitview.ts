// Shows a server's requests, LIMIT and FIX: what limits the program, which changes help most, and how sure this is.

import type { Limit, Trust } from "../data";
import { el } from "../dom";

const part = (title: string, ...children: (Node | null)[]): HTMLElement => el("div", { class: "limit" }, el("h2", {}, title), el("div", {}, ...children));
const MEANS: Record<string, string> = {
  good: "No note can change the answer.",
  fair: "A note can change the answer.",
  poor: "A note makes the answer wrong, or may.",
};

export function limitView({ requests, limit, more, fixes }: Limit, { sure, doubts, notes }: Trust): HTMLElement[] {
  if (limit === "") return [];
  const changes = fixes.map((fix) => el("li", {}, el("span", {}, fix.what), el("b", {}, fix.gain), el("span", { class: "note" }, fix.at_largest)));
  const count = notes === 0 ? "" : `, ${notes} ${notes === 1 ? "note" : "notes"} below, in Notes`;
  return [
    ...requests.map(([title, text]) => part(title, el("p", {}, text))),
    part("LIMIT", el("p", {}, limit), ...more.map((line) => el("p", { class: "note" }, line))),
    ...(fixes.length ? [part("FIX", el("ul", { class: "fixes" }, ...changes))] : []),
    part("SURE", el("p", { id: "sure", title: MEANS[sure] ?? "" }, `${sure}${count}`), ...doubts.map((doubt) => el("p", { class: "note" }, doubt))),
  ];
}
