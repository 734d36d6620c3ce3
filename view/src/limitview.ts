// LIMIT and FIX: what limits, and the changes that bring most.

import type { Limit } from "./data";
import { el } from "./dom";

export function limitView(limit: Limit): HTMLElement[] {
  const fixes = limit.fixes.map((fix) => el("li", {}, el("span", { class: "what" }, fix.what), el("b", {}, fix.gain), fix.at_largest && el("span", { class: "note" }, ` ${fix.at_largest}`)));
  const parts: HTMLElement[] = [];
  if (limit.limit !== "") parts.push(el("div", { class: "limit" }, el("h2", {}, "LIMIT"), el("div", {}, el("p", {}, limit.limit), ...limit.more.map((line) => el("p", { class: "note" }, line)))));
  if (fixes.length > 0) parts.push(el("div", { class: "limit" }, el("h2", {}, "FIX"), el("ul", { class: "fixes" }, ...fixes)));
  return parts;
}
