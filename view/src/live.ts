// The page of `longpole top --listen`: shows the report of each second when it arrives.

import type { Limit, Report, Trust } from "./data";
import { button, el } from "./dom";
import { duration, grouped, onCpus, percent } from "./format";
import { limitView } from "./tables/limitview";
import * as tables from "./tables/tables";
import { tableView } from "./tables/tableview";

interface Told {
  subject: string; limit: Limit; trust: Trust;
  report: Report & { stretch: { end_unix_ms: number; length_ns: number; threads: number; is_shortened: boolean } };
}
interface Counts { events: number; lost: number; cost: number | null; has_ended: boolean }

class Live {
  told: Told | null = null;
  private counts: Counts | null = null;
  private isPaused = false;
  private isThere = false;
  private readonly title = el("h1", {}, "longpole");
  private readonly about = el("p", { class: "about", role: "status" });
  private readonly limit = el("div");
  private readonly body = el("main");
  private readonly pause = button("pause", () => {
    this.isPaused = !this.isPaused;
    this.pause.textContent = this.isPaused ? "go on" : "pause";
    if (!this.isPaused) this.show();
  });

  constructor(app: HTMLElement) {
    app.replaceChildren(el("header", {}, this.title, this.about, this.limit), el("nav", { "aria-label": "View" }, this.pause), this.body);
    this.say();
    // The page's address contains the token.
    const source = new EventSource(`events${location.search}`);
    source.addEventListener("report", (event) => {
      this.told = JSON.parse(event.data) as Told;
      if (!this.isPaused) this.show();
    });
    source.addEventListener("counts", (event) => {
      this.counts = JSON.parse(event.data) as Counts;
      this.isThere = true;
      this.say();
    });
    source.addEventListener("error", () => {
      this.isThere = false;
      this.say();
    });
  }

  /** Updates the line that changes each second. */
  private say(): void {
    const { told, counts } = this;
    const parts: (string | false | null | undefined)[] = [];
    if (told) {
      const { stretch } = told.report;
      const age = Math.max(0, Math.round((Date.now() - stretch.end_unix_ms) / 1000));
      parts.push(`last ${duration(stretch.length_ns)}${stretch.is_shortened ? " (shortened)" : ""}, ${age} s ago`, `${stretch.threads} threads`);
    }
    if (counts) {
      parts.push(`${grouped(counts.events)} events`, counts.lost > 0 && `${grouped(counts.lost)} lost`, counts.cost !== null && `cost ${percent(counts.cost)}`,
        counts.has_ended && "the program has ended");
    }
    if (!this.isThere) parts.push(counts ? "longpole does not answer: longpole has ended or was stopped" : "waiting for longpole");
    else if (!told) parts.push("the first report comes with the first stretch");
    this.about.textContent = parts.filter(Boolean).join(" · ");
  }

  private show(): void {
    const { told } = this;
    if (!told) return;
    document.title = `${told.subject} – longpole top`;
    this.title.textContent = told.subject;
    this.limit.replaceChildren(...limitView(told.limit, told.trust));
    const none = (): void => {};
    const { report } = told;
    const shown = [predicted(report), tables.requests(report), tables.functions(report), tables.locks(report), tables.waits(report), tables.notes(report)];
    this.body.replaceChildren(...shown.filter((table) => table.rows.length > 0).map((table) => tableView(table, none)));
    this.say();
    document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
  }
}

function predicted(report: Report): tables.Table {
  return {
    id: "predicted",
    title: "Predicted time of this stretch",
    columns: ["", ...report.results.map((result) => onCpus(result.cpus))],
    rows: [
      { cells: [{ text: "time" }, ...report.results.map((result) => ({ text: duration(result.time_ns), value: result.time_ns }))] },
      { cells: [{ text: "speed-up" }, ...report.results.map((result) => ({ text: result.speedup.toFixed(2), value: result.speedup }))] },
    ],
  };
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colours = (): void => document.body.setAttribute("data-theme", dark.matches ? "dark" : "light");
const app = document.getElementById("app");
if (app) {
  colours();
  dark.addEventListener("change", colours);
  // Tests that drive the page use this object.
  Object.assign(window, { longpole: new Live(app) });
}
