// Decides which rows a run has: one for each thread, and groups if there are many threads.

/** Height of a row, in pixels. */
export const ROW = 22;
/** Largest number of threads with a row for each. */
export const MOST_ROWS = 40;

export interface Row {
  /** The lane of the row's thread; -1 for a group. */
  lane: number;
  title: string;
  /** The lanes of a group's threads. */
  group?: number[];
}

/** The common name of threads with the same job: the name without its thread number and without digits at its end. */
export function family(name: string): string {
  const bare = (of: string): string => of.replace(/[\s/#:._-]*\d+$/, "") || of;
  return bare(name.replace(/\/\d+$/, "") || name);
}

/** The rows for threads with these names. A group whose name is in `open` has its threads below it. */
export function rows(names: readonly string[], open: ReadonlySet<string>): Row[] {
  if (names.length <= MOST_ROWS) return names.map((title, lane) => ({ lane, title }));
  const families = new Map<string, number[]>();
  names.forEach((name, lane) => {
    const of = family(name);
    const members = families.get(of);
    if (members) members.push(lane);
    else families.set(of, [lane]);
  });
  const all: Row[] = [];
  for (const [title, group] of families) {
    if (group.length === 1) {
      all.push({ lane: group[0], title: names[group[0]] });
      continue;
    }
    all.push({ lane: -1, title, group });
    if (open.has(title)) for (const lane of group) all.push({ lane, title: names[lane] });
  }
  return all;
}
