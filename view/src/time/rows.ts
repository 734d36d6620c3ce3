// Which rows a run has: a row for each thread, and groups where there are many.

/** Height of a row. */
export const ROW = 22;
/** Threads that are shown one by one. */
export const MOST_ROWS = 40;

export interface Row {
  /** A thread, by its lane; -1: a group. */
  lane: number;
  title: string;
  /** Lanes of a group. */
  group?: number[];
}

/** What threads with the same job are called: the name without its thread number and without a number at its end. */
export function family(name: string): string {
  const bare = (of: string): string => of.replace(/[\s/#:._-]*\d+$/, "") || of;
  return bare(name.replace(/\/\d+$/, "") || name);
}

/** Rows of threads with these names; groups whose names are among `open` have their threads below them. */
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
