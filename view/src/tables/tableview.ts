// Shows tables as table elements, for screen readers, sorting and printing.

import { el } from "../dom";
import type { Cell, Row, Table } from "./tables";

/** Largest and smallest number of rows that are shown at first. */
const ROWS = 100;
const FEW = 8;

/** What the user has changed in a table. The table is made again whenever its numbers change. */
interface Left { more: number; by: number | null; descends: boolean }
const left = new Map<string, Left>();

/** Whether the cell has a number, or a dash in place of a number. */
const isNumber = (cell: Cell | undefined): boolean => cell !== undefined && (cell.value !== undefined || cell.text === "–");

export function tableView(table: Table, choose: (row: Row) => void): HTMLElement {
  const body = el("tbody");
  const own = left.get(table.id) ?? { more: 0, by: null, descends: false };
  left.set(table.id, own);
  let rows = table.rows;
  const shown = () => own.more + Math.min(ROWS, Math.max(FEW, table.first ?? ROWS));
  const more = el("button", { type: "button" });
  const fill = (): void => {
    body.replaceChildren(...rows.slice(0, shown()).map((row) => {
      const line = el("tr", {}, ...row.cells.map((cell, place) => {
        const attributes: Record<string, string | number> = {};
        if (cell.value !== undefined) attributes["data-value"] = cell.value;
        if (cell.title) attributes["title"] = cell.title;
        if (isNumber(cell) && place > 0) attributes["class"] = "number";
        return place === 0 ? el("th", { scope: "row", ...attributes }, cell.text) : el("td", attributes, cell.text);
      }));
      if (row.lights?.length) {
        line.tabIndex = 0;
        line.classList.add("chooses");
        line.addEventListener("click", () => choose(row));
        line.addEventListener("keydown", (event) => event.key === "Enter" && choose(row));
      }
      return line;
    }));
    more.hidden = rows.length <= shown();
    more.textContent = `${rows.length - shown()} more`;
  };
  more.addEventListener("click", () => {
    own.more += 10 * ROWS;
    fill();
  });
  const sort = (place: number): void => {
    const key = (cell: { value?: number; text: string } | undefined) => cell?.value ?? cell?.text ?? "";
    rows = [...table.rows].sort((a, b) => {
      const [x, y] = [key(a.cells[place]), key(b.cells[place])];
      const order = typeof x === "number" && typeof y === "number" ? x - y : typeof x === "number" ? 1 : typeof y === "number" ? -1 : x < y ? -1 : x > y ? 1 : 0;
      return own.descends ? -order : order;
    });
    for (const [other, cell] of heads.entries()) {
      if (other === place) cell.setAttribute("aria-sort", own.descends ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  };
  const heads = table.columns.map((title, place) => {
    const button = el("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      own.descends = own.by === place ? !own.descends : true;
      own.by = place;
      sort(place);
      fill();
    });
    const isOfNumbers = place > 0 && table.rows.length > 0 && table.rows.every((row) => isNumber(row.cells[place]));
    return el("th", isOfNumbers ? { scope: "col", class: "number" } : { scope: "col" }, button);
  });
  const head = el("tr", {}, ...heads);
  if (own.by !== null && own.by < heads.length) sort(own.by);
  fill();
  return el("section", { class: "table", id: `table-${table.id}` },
    el("table", {}, el("caption", {}, el("span", {}, table.title)), el("thead", {}, head), body),
    table.rows.length === 0 && !table.note?.startsWith("Left out") && el("p", { class: "note" }, "The recording has none."),
    more, table.note && el("p", { class: "note" }, table.note));
}
