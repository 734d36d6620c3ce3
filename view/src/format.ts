// Formats numbers as longpole's screens do.

const UNITS: [number, string][] = [
  [1e3, "µs"], [1e6, "ms"], [1e9, "s"], [60e9, "min"], [3600e9, "h"], [86400e9, "d"],
];

/** A duration in nanoseconds, with three digits. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "?";
  const size = Math.abs(ns);
  if (size < 999.5) return `${ns.toFixed(0)} ns`;
  const unit = UNITS.find(([of]) => size / of < 999.5) ?? UNITS[UNITS.length - 1];
  const value = ns / unit[0];
  const digits = Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${unit[1]}`;
}

/** A point in time, with enough digits to distinguish points that are `resolution` apart. */
export function instant(ns: number, resolution: number): string {
  const [unit, name] = [...UNITS].slice(0, 3).reverse().find(([of]) => resolution >= of / 1000) ?? [1e3, "µs"];
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(resolution / unit))));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return Math.abs(value) < 10 && value !== 0 ? `${value.toFixed(1)} %` : `${value.toFixed(0)} %`;
}

/** A count with separators for thousands. */
export function grouped(count: number): string {
  return Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

export function onCpus(cpus: string | number): string {
  if (String(cpus) === "inf") return "unlimited CPUs";
  return String(cpus) === "1" ? "1 CPU" : `${cpus} CPUs`;
}

/** Characters that change the direction of the following text, so that a name can look like another one. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The text with these characters made visible. */
export function plain(text: string): string {
  return text.replace(TURNS, "\ufffd");
}

/** A name without parameters and template arguments. A long name keeps its end, which distinguishes it from others. */
export function short(name: string, most = 60): string {
  const bare = name.replace(/\(.*\)( const)?$/, "");
  return bare.length <= most ? bare : `…${bare.slice(bare.length - most + 1)}`;
}

/** The end of a path: `store.c:27`. */
export function fileName(location: string): string {
  return location.slice(location.lastIndexOf("/") + 1);
}
