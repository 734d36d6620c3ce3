// The user's choices. All of them are in the page's address, so that a link shows the same view.

export interface Picked { run: "measured" | "predicted"; lane: number; time: number }
export interface State {
  /** Index of the chosen CPU count. */
  cpus: number;
  /** The visible part of the time axis, in nanoseconds. */
  from: number;
  to: number;
  selection: [number, number] | null;
  picked: Picked | null;
  tab: string;
  theme: string;
  search: string;
}

export type Listener = (changed: ReadonlySet<keyof State>) => void;

export class Store {
  private readonly listeners: Listener[] = [];
  constructor(readonly state: State) {}

  on(listener: Listener): void {
    this.listeners.push(listener);
  }

  set(change: Partial<State>): void {
    const changed = new Set<keyof State>();
    for (const [name, value] of Object.entries(change) as [keyof State, never][]) {
      if (this.state[name] !== value) {
        this.state[name] = value;
        changed.add(name);
      }
    }
    if (changed.size) for (const listener of this.listeners) listener(changed);
  }
}

const range = (from: number, to: number) => `${Math.round(from)}-${Math.round(to)}`;

/** The part of the address after its #. */
export function toLink(state: State, cpus: readonly string[], length: number): string {
  const words = new URLSearchParams();
  words.set("cpus", cpus[state.cpus] ?? "");
  if (state.from !== 0 || state.to !== length) words.set("t", range(state.from, state.to));
  if (state.selection) words.set("select", range(...state.selection));
  if (state.picked) words.set("at", `${state.picked.run},${state.picked.lane},${Math.round(state.picked.time)}`);
  if (state.search) words.set("search", state.search);
  words.set("tab", state.tab);
  if (state.theme !== "auto") words.set("theme", state.theme);
  return words.toString();
}

/** Reads the choices from an address. Invalid parts are ignored. */
export function fromLink(link: string, cpus: readonly string[]): Partial<State> {
  const words = new URLSearchParams(link.replace(/^#/, ""));
  const found: Partial<State> = {};
  const place = cpus.indexOf(words.get("cpus") ?? "");
  if (place >= 0) found.cpus = place;
  const span = (text: string | null): [number, number] | null => {
    const match = /^(\d{1,18})-(\d{1,18})$/.exec(text ?? "");
    const [from, to] = [Number(match?.[1]), Number(match?.[2])];
    return match && from < to ? [from, to] : null;
  };
  const shown = span(words.get("t"));
  if (shown) [found.from, found.to] = shown;
  const selection = span(words.get("select"));
  if (selection) found.selection = selection;
  const at = /^(measured|predicted),(\d{1,9}),(\d{1,18})$/.exec(words.get("at") ?? "");
  if (at) found.picked = { run: at[1] as Picked["run"], lane: Number(at[2]), time: Number(at[3]) };
  const [tab, theme, search] = [words.get("tab"), words.get("theme"), words.get("search")];
  if (tab && /^[a-z-]{1,20}$/.test(tab)) found.tab = tab;
  if (theme && ["auto", "light", "dark", "safe"].includes(theme)) found.theme = theme;
  if (search) found.search = search;
  return found;
}

/** Moves a range and scales it around a point. The result stays between 0 and `length`, and is at least 100 ns long. */
export function zoomed(from: number, to: number, about: number, factor: number, length: number): [number, number] {
  const width = Math.min(Math.max((to - from) * factor, 100), length);
  const share = to > from ? (about - from) / (to - from) : 0.5;
  return moved(about - share * width, about - share * width + width, 0, length);
}

export function moved(from: number, to: number, by: number, length: number): [number, number] {
  const width = Math.min(to - from, length);
  const start = Math.min(Math.max(from + by, 0), length - width);
  return [start, start + width];
}
