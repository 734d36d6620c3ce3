// The document, and data that is computed from it once: runs, paths, names, colours.

import type { Data, Document } from "./data";
import { Lanes } from "./time/lanes";
import { measuredRun, predictedRun, type Run } from "./time/run";

export interface Path {
  isOne: boolean;
  /** One lane for the whole path, or one for each thread. */
  lanes: Lanes;
  weights: number[];
}

export class Model {
  readonly doc: Document;
  readonly measured: Run | null;
  /** Length of the time axis, which all runs share, in nanoseconds. */
  readonly length: number;
  private readonly runs = new Map<number, Run>();
  private readonly paths = new Map<number, Path>();
  private readonly threadNumbers = new Map<string, number>();

  constructor(private readonly data: Data) {
    this.doc = data.doc;
    this.measured = measuredRun(data);
    const lengths = this.doc.predicted.map((run) => run.length_ns);
    this.length = Math.max(this.measured?.length ?? 0, ...lengths, 1);
    this.doc.names.threads.forEach((thread, number) => this.threadNumbers.set(thread.name, number));
  }

  /** The predicted run for the CPU count with this index. */
  predicted(place: number): Run {
    let run = this.runs.get(place);
    if (!run) this.runs.set(place, (run = predictedRun(this.data, place)));
    return run;
  }

  path(place: number): Path {
    let path = this.paths.get(place);
    if (!path) {
      const facts = this.doc.paths_on[place];
      // All stretches have the same class, because no sums by class are needed.
      const kinds = new Uint8Array(this.doc.path_colours.length);
      path = {
        isOne: facts?.is_one ?? true,
        lanes: new Lanes(this.data, `path${place}`, kinds, 1),
        weights: facts?.weights ?? [],
      };
      this.paths.set(place, path);
    }
    return path;
  }

  thread(number: number): string {
    return this.doc.names.threads[number]?.name ?? "?";
  }

  threadNumber(name: string): number | undefined {
    return this.threadNumbers.get(name);
  }

  functionName(number: number | undefined): string {
    return number === undefined ? "(function not known)" : this.doc.names.functions[number]?.name ?? "(function not known)";
  }

  object(number: number): string {
    return this.doc.names.objects[number] ?? "?";
  }

  run(name: "measured" | "predicted", cpus: number): Run | null {
    return name === "measured" ? this.measured : this.predicted(cpus);
  }

  /** The innermost function of a sampled stack. */
  innermost(stack: number): number | undefined {
    const place = this.doc.names.stacks[stack]?.[0];
    return place === undefined ? undefined : this.doc.names.places[place]?.[0];
  }

  /** The index of the CPU count of the recorded machine, or of the nearest one. */
  usualCpus(): number {
    const recorded = this.doc.about.recorded_cpus;
    const exact = this.doc.cpus.indexOf(String(recorded));
    if (exact >= 0) return exact;
    const fewer = this.doc.cpus.filter((cpus) => Number(cpus) <= (recorded ?? 4)).length;
    return Math.max(0, fewer - 1);
  }
}
