// Reads the file that longpole wrote: a JSON document, followed by columns of whole numbers.

export interface Place { kind: string; name: string }
export interface FunctionRow {
  function: string; calls: number; tet_ns: number; tetid_ns: number; location?: string;
  tet_error_ns?: number; tetid_error_ns?: number; uncounted?: boolean; calls_partial?: boolean;
}
export interface WaitRow { kind: string; object?: string; count: number; length_ns: number; weighted_ns: number }
export interface Result {
  cpus: number | "inf"; time_ns: number; speedup: number; functions: FunctionRow[];
  locks?: { lock: string; held_ns: number }[]; waits?: WaitRow[];
}
export interface LockRow {
  lock: string; acquisitions: number; contended?: number; wait_ns?: number; hold_ns?: number; holder?: string;
}
/** Requests at one port of the program, or requests that it sent to one address. */
export interface Endpoint {
  served: boolean; name: string; per_second: number; open: number; mean_ns: number; p99_ns: number;
  spent?: { kind: string; name: string; share: number }[];
}
export interface Finding { kind: string; severity: string; text: string }
export interface Report { limit?: { requests?: Endpoint[] }; results: Result[]; locks?: LockRow[]; findings: Finding[]; trust: Record<string, number | null> }
export interface Predicted {
  cpus: number | "inf"; time_ns: number; low_ns: number; high_ns: number; speedup: number; efficiency: number;
  threads: { thread: string; busy_ns: number; spinning_ns: number; ready_ns: number; blocked_ns: number }[];
}
export interface Prediction {
  results: Predicted[]; crossovers: { cpus: number | "inf"; function: string; over: string }[];
  saturation?: { cpus: number | "inf"; most_speedup: number };
}
export interface QuartzRow {
  kind: string; name: string | null; normalized_self_ns: number; normalized_total_ns: number; busy_ns: number;
  spinning_ns: number; blocked_ns: number; ready_ns: number; calls: number | null; by_busy: [number, number][];
}
export interface Quartz {
  run: string; elapsed_ns: number; nobody_busy_ns: number; busy: [number, number][]; rows: QuartzRow[];
}
export interface SlackRow {
  function: string; critical_path_ns: number; zeroing_ns: number; slack_ns: number; simulated_ns?: number;
}
export interface Slack { length_ns: number; functions: SlackRow[] }
export interface PathRow {
  rank: number; length_ns: number; nearness: number;
  route?: { thread: string; by: string; parts: { kind: string; name?: string; length_ns: number; times: number }[] }[];
}
export interface Paths { length_ns: number; path_count: number; paths: PathRow[] }
export interface Curve { kind: "function" | "lock"; name: string; stops: { value: number; times_ns: number[] }[] }
export interface StateColour {
  state: "none" | "running" | "spinning" | "ready" | "blocked" | "unknown";
  cpu?: number; reason?: string; object?: number; lock?: boolean; idle?: boolean; ended_by?: string;
}
export interface PathColour { thread?: number; function?: number; wait?: string }
export interface Flame { functions: number[]; cpu_ns: number; owed_ns: number[] }
export interface MeasuredRun {
  length_ns: number; quantum_ns: number;
  threads: { thread: number; process: string; tid: number; start_ns: number; end_ns: number; created_by?: number }[];
  functions: string[];
  calls_left_out: number; calls_left_out_below_ns: number;
  sections_left_out: number; sections_left_out_below_ns: number;
}
export interface Limit { requests: [string, string][]; limit: string; more: string[]; fixes: { what: string; gain: string; at_largest: string | null }[] }
/** How reliable the answer is. */
export interface Trust { sure: string; doubts: string[]; notes: number }
export interface Document {
  format: string;
  about: {
    title: string; file: string; command: string | null; host: string | null; longpole: string | null;
    recorded_cpus: number | null; start_ns: number; recorded_at_ns: number | null;
  };
  cpus: string[];
  limit: Limit; trust: Trust;
  report: Report; predict: Prediction;
  /** Null if the result is too large for a page. */
  parallelism: Quartz | null; slack: Slack | null; paths: Paths | null;
  curves: Curve[];
  /** Measured times in other recordings of the same command. */
  points: { file: string; cpus: number; time_ns: number }[];
  names: {
    threads: { name: string; process: string | null }[];
    functions: { name: string; location?: string }[];
    objects: string[];
    places: [number, string | null][];
    stacks: number[][];
  };
  states: StateColour[];
  path_colours: PathColour[];
  measured: MeasuredRun | null;
  predicted: { length_ns: number; quantum_ns: number }[];
  paths_on: { is_one: boolean; quantum_ns: number; weights: number[]; left_out: number }[];
  flames: Flame[];
  sources: Record<string, Record<string, string>>;
  columns: Record<string, [number, number]>;
}

/** The document and its columns. */
export class Data {
  constructor(readonly doc: Document, private readonly bytes: Uint8Array) {}

  /** All numbers of a column in order; an empty array if there is no such column. */
  column(name: string): Float64Array {
    const place = this.doc.columns[name];
    if (!place) return new Float64Array(0);
    const [from, length] = place;
    return numbers(this.bytes.subarray(from, from + length));
  }
}

/** Decodes LEB128 numbers: seven bits in each byte, lowest bits first. */
export function numbers(bytes: Uint8Array): Float64Array {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] < 128) count++;
  const all = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++];
    let value = byte & 127;
    for (let factor = 128; byte >= 128; factor *= 128) {
      byte = bytes[at++];
      value += (byte & 127) * factor;
    }
    all[i] = value;
  }
  return all;
}

/** Unpacks the file's content: base64 of a gzip stream that contains the length of the JSON, the JSON, and the columns. */
export async function unpack(base64: string): Promise<Data> {
  const packed = decoded(base64);
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const doc = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Document;
  return new Data(doc, new Uint8Array(buffer, 4 + length));
}

function decoded(base64: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
