// Tables as elements: real ones, for screen readers, sorting and printing.

import { el } from "./dom";
import type { Table } from "./tables";

/** Rows shown at first. */
const ROWS = 100;

export function tableView(table: Table, choose: (threads: string[]) => void): HTMLElement {
  const body = el("tbody");
  let rows = table.rows;
  let shown = ROWS;
  const more = el("button", { type: "button" });
  const fill = (): void => {
    body.replaceChildren(...rows.slice(0, shown).map((row) => {
      const line = el("tr", {}, ...row.cells.map((cell, place) => {
        const attributes: Record<string, string | number> = {};
        if (cell.value !== undefined) attributes["data-value"] = cell.value;
        if (cell.title) attributes["title"] = cell.title;
        if (cell.value !== undefined && place > 0) attributes["class"] = "number";
        return place === 0 ? el("th", { scope: "row", ...attributes }, cell.text) : el("td", attributes, cell.text);
      }));
      const { lights } = row;
      if (lights?.length) {
        line.tabIndex = 0;
        line.classList.add("chooses");
        line.addEventListener("click", () => choose(lights));
        line.addEventListener("keydown", (event) => event.key === "Enter" && choose(lights));
      }
      return line;
    }));
    more.hidden = rows.length <= shown;
    more.textContent = `${rows.length - shown} more`;
  };
  more.addEventListener("click", () => {
    shown += 10 * ROWS;
    fill();
  });
  const head = el("tr", {}, ...table.columns.map((title, place) => header(title, (descends) => {
    const key = (cell: { value?: number; text: string } | undefined) => cell?.value ?? cell?.text ?? "";
    rows = [...table.rows].sort((a, b) => {
      const [x, y] = [key(a.cells[place]), key(b.cells[place])];
      const order = typeof x === "number" && typeof y === "number" ? x - y : typeof x === "number" ? 1 : typeof y === "number" ? -1 : x < y ? -1 : x > y ? 1 : 0;
      return descends ? -order : order;
    });
    fill();
  })));
  fill();
  return el("section", { class: "table", id: `table-${table.id}` },
    el("table", {}, el("caption", {}, table.title), el("thead", {}, head), body),
    table.rows.length === 0 && !table.note?.startsWith("Left out") && el("p", { class: "note" }, "There is nothing of this in the recording."),
    more, table.note && el("p", { class: "note" }, table.note));
}

function header(title: string, sort: (descends: boolean) => void): HTMLElement {
  let descends = false;
  const button = el("button", { type: "button" }, title);
  const cell = el("th", { scope: "col" }, button);
  button.addEventListener("click", () => {
    descends = !descends;
    for (const other of cell.parentElement?.children ?? []) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", descends ? "descending" : "ascending");
    sort(descends);
  });
  return cell;
}
