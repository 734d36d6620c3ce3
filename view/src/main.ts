// The page of `longpole view`: reads the document that the page contains, and shows it.

import type { Stretch } from "./details/causes";
import { detailView } from "./details/detailview";
import { unpack } from "./data";
import { button, el } from "./dom";
import { duration, onCpus } from "./format";
import { limitView } from "./tables/limitview";
import { Model } from "./model";
import { occurrence, search, type Hit } from "./details/search";
import { Stage } from "./time/stage";
import { fromLink, moved, Store, toLink, type Picked, type State } from "./state";
import type { Row } from "./tables/tables";
import { Tabs } from "./tables/tabs";
import { theme as themeOf, THEMES } from "./theme";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

class Page {
  readonly store: Store;
  readonly stage: Stage;
  private readonly tabs: Tabs;
  private readonly details = el("aside", { class: "details", "aria-live": "polite", "aria-label": "Details" });
  private readonly hits = el("ul", { class: "hits" });
  private readonly cpusText = el("output", { for: "cpus" });
  private readonly cpus: HTMLInputElement;
  private isShowing = false;
  private isPrinting = false;

  constructor(readonly model: Model, private readonly app: HTMLElement) {
    const usual: State = {
      cpus: model.usualCpus(), from: 0, to: model.length, selection: null, picked: null, tab: "functions", theme: "auto", search: "",
    };
    this.store = new Store({ ...usual, ...this.checked(fromLink(location.hash, model.doc.cpus)) });
    const theme = () => themeOf(this.colours());
    this.stage = new Stage(model, this.store, theme);
    this.tabs = new Tabs(model, this.store, theme, (row) => this.mark(row));
    this.cpus = el("input", { type: "range", id: "cpus", min: 0, max: Math.max(0, model.doc.cpus.length - 1), step: 1, value: this.store.state.cpus });
    app.replaceChildren(this.head(), this.controls(), el("main", {}, el("div", { class: "side" }, this.stage.element, this.details), this.tabs.element));
    this.store.on((changed) => this.update(changed));
    this.update(new Set(Object.keys(this.store.state) as (keyof State)[]));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.store.set(this.checked(fromLink(location.hash, model.doc.cpus))));
    dark.addEventListener("change", () => this.update(new Set(["theme"])));
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  /** Switches to light colours while printing, and draws at once, because a printed page has no next frame. */
  private print(isPrinting: boolean): void {
    this.isPrinting = isPrinting;
    this.update(new Set(["theme"]));
    this.stage.draw();
  }

  private colours(): "light" | "dark" | "safe" {
    const { theme } = this.store.state;
    if (theme === "safe") return theme;
    const isDark = theme === "dark" || (theme === "auto" && dark.matches);
    return isDark && !this.isPrinting ? "dark" : "light";
  }

  /** The state in a link, without the parts that this recording does not have. */
  private checked(link: Partial<State>): Partial<State> {
    if (link.from !== undefined && link.to !== undefined) {
      const [from, to] = moved(link.from, link.to, 0, this.model.length);
      return { ...link, from, to };
    }
    return link;
  }

  private head(): HTMLElement {
    const { about, limit, trust } = this.model.doc;
    const when = about.recorded_at_ns === null ? "" : new Date(about.recorded_at_ns / 1e6).toISOString().slice(0, 19).replace("T", " ");
    const facts = [about.command, about.host && `on ${about.host}`, when && `${when} UTC`, this.model.measured && duration(this.model.measured.length),
      about.recorded_cpus && onCpus(about.recorded_cpus), `${this.model.doc.names.threads.length} threads`];
    document.title = `${about.title} – longpole`;
    return el("header", {},
      el("h1", {}, about.title), el("p", { class: "about" }, facts.filter(Boolean).join(" · ")), ...limitView(limit, trust));
  }

  private controls(): HTMLElement {
    const { store } = this;
    this.cpus.addEventListener("input", () => store.set({ cpus: Number(this.cpus.value), picked: store.state.picked?.run === "predicted" ? null : store.state.picked }));
    const find = el("input", { type: "search", id: "search", placeholder: "search   /", "aria-label": "Search threads, functions and locks", value: store.state.search });
    find.addEventListener("input", () => store.set({ search: find.value }));
    find.addEventListener("keydown", (event) => event.key === "Enter" && this.hit(search(this.model, find.value)[0]));
    const themes = el("select", { "aria-label": "Colours" }, ...THEMES.map((name) => el("option", { value: name }, name === "safe" ? "colour-blind-safe" : name)));
    themes.value = store.state.theme;
    themes.addEventListener("change", () => store.set({ theme: themes.value }));
    return el("nav", { "aria-label": "View" },
      el("label", { for: "cpus" }, "CPUs"), this.cpus, this.cpusText,
      button("whole run", () => store.set({ from: 0, to: this.model.length, selection: null })),
      el("span", { class: "find" }, find, this.hits), themes, button("print", () => window.print()));
  }

  /** Marks threads, and a path at its place on unlimited CPUs. */
  private mark(row: Row): void {
    const number = (name: string): number[] => [this.model.threadNumber(name) ?? []].flat();
    const threads = (row.lights ?? []).flatMap(number);
    let now = 0;
    const way = (row.way ?? []).flatMap(({ thread, length }) => {
      const from = now;
      now += length;
      return number(thread).map((lane) => ({ lane, from, to: now }));
    });
    const unlimited = this.model.doc.cpus.indexOf("inf");
    if (way.length && unlimited >= 0) this.store.set({ cpus: unlimited });
    this.stage.light(threads, way);
  }

  private hit(hit: Hit | undefined): void {
    if (!hit) return;
    if (hit.kind === "thread") this.stage.light([hit.number]);
    const { picked } = this.store.state;
    const found = occurrence(this.model, hit, picked?.run === "measured" ? picked.time : -1);
    if (found) this.go({ run: "measured", ...found });
  }

  /** Selects an item and scrolls to it. */
  go(to: Picked): void {
    const { from, to: end } = this.store.state;
    const [start, until] = to.time < from || to.time > end ? moved(from, end, to.time - (from + end) / 2, this.model.length) : [from, end];
    this.store.set({ picked: to, from: start, to: until });
    this.stage.reveal(to);
  }

  private follow(stretch: Stretch): void {
    const { picked } = this.store.state;
    // Time that passes between two threads is shown in the thread that the path left.
    const lane = stretch.thread ?? picked?.lane ?? 0;
    this.go({ run: "predicted", lane, time: (stretch.from + stretch.to) / 2 });
  }

  private key(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("search")?.focus();
    } else if (event.key === "[" || event.key === "]") {
      const [previous, next] = [...this.details.querySelectorAll<HTMLButtonElement>(".walk button")];
      (event.key === "[" ? previous : next)?.click();
    } else if (event.key === "Escape") {
      this.store.set({ picked: null, selection: null });
    }
  }

  /** Draws once before the next frame, however many changes there are: dragging a range makes many. */
  private showSoon(): void {
    if (this.isShowing) return;
    this.isShowing = true;
    requestAnimationFrame(() => {
      this.isShowing = false;
      this.tabs.show();
    });
  }

  private update(changed: ReadonlySet<keyof State>): void {
    const { state } = this.store;
    const any = (...names: (keyof State)[]) => names.some((name) => changed.has(name));
    if (any("theme")) this.app.parentElement?.setAttribute("data-theme", this.colours());
    if (any("cpus")) {
      this.cpus.value = String(state.cpus);
      this.cpusText.textContent = onCpus(this.model.doc.cpus[state.cpus] ?? "?");
      this.cpus.setAttribute("aria-valuetext", this.cpusText.textContent);
    }
    if (any("selection") && state.selection && !changed.has("tab") && state.tab !== "selection") this.store.set({ tab: "selection" });
    if (any("search")) {
      const found = search(this.model, state.search).slice(0, 12);
      this.hits.replaceChildren(...found.map((hit) => el("li", {}, button(`${hit.kind} ${hit.name}`, () => this.hit(hit)))));
    }
    if (any("picked", "cpus")) this.details.replaceChildren(...detailView(this.model, state, (to) => this.go(to), (stretch) => this.follow(stretch)));
    const dependsOnCpus = ["threads", "curve", "flames", "what-if", "selection"].includes(state.tab);
    if (any("tab", "theme") || (any("cpus") && dependsOnCpus) || (any("search") && state.tab === "flames")) this.tabs.show();
    else if (any("selection")) this.showSoon();
    this.stage.redraw();
    const link = toLink(state, this.model.doc.cpus, this.model.length);
    if (link !== location.hash.slice(1)) history.replaceState(null, "", `#${link}`);
  }
}

async function start(): Promise<void> {
  const app = document.getElementById("app");
  const packed = document.getElementById("document");
  if (!app || !packed) return;
  try {
    const data = await unpack((packed.textContent ?? "").trim());
    packed.remove();
    const page = new Page(new Model(data), app);
    document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
    // Tests that drive the page use this object.
    Object.assign(window, { longpole: page });
  } catch (error) {
    app.replaceChildren(el("p", { role: "alert" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}. A browser of 2023 or newer is needed.`));
  }
}

void start();
