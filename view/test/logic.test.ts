// Tests of the code that needs no browser: numbers, lanes, links, rows, words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Data, numbers, type Document } from "../src/data";
import { duration, instant, percent, plain, short } from "../src/format";
import { Lanes, levels } from "../src/time/lanes";
import { normalized } from "../src/time/normalized";
import { family, rows } from "../src/time/rows";
import { fromLink, moved, toLink, zoomed, type State } from "../src/state";
import { histogram, requests } from "../src/tables/tables";

function leb(values: number[]): number[] {
  return values.flatMap((value) => {
    const bytes = [];
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    return [...bytes, value];
  });
}

/** Makes lanes of items [code, length]. Each lane begins at its start time. */
function lanes(list: { start: number; items: [number, number][] }[]): Lanes {
  const columns: Record<string, [number, number]> = {};
  const bytes: number[] = [];
  const add = (name: string, values: number[]): void => {
    const packed = leb(values);
    columns[`l.${name}`] = [bytes.length, packed.length];
    for (const byte of packed) bytes.push(byte);
  };
  add("counts", list.map((lane) => lane.items.length));
  add("starts", list.map((lane) => lane.start));
  add("codes", list.flatMap((lane) => lane.items.map(([code]) => code * 2)));
  add("lengths", list.flatMap((lane) => lane.items.map(([, length]) => length)));
  add("more", list.flatMap((lane) => lane.items.map(() => 0)));
  return new Lanes(new Data({ columns } as Document, Uint8Array.from(bytes)), "l", Uint8Array.from([0, 1, 2]), 3);
}

test("a name that turns the direction of text does not read as another one", () => {
  assert.equal(plain("\u202elive/51\u2066"), "\ufffdlive/51\ufffd");
  assert.equal(plain("\u05e9\u05dc\u05d5\u05dd a\tb"), "\u05e9\u05dc\u05d5\u05dd a\tb", "other scripts stay");
});

test("numbers of any size", () => {
  const values = [0, 1, 127, 128, 300, 2 ** 32, Number.MAX_SAFE_INTEGER];
  assert.deepEqual([...numbers(Uint8Array.from(leb(values)))], values);
  assert.deepEqual([...numbers(new Uint8Array(0))], []);
});

test("sums over ranges are those of single items", () => {
  const items: [number, number][] = Array.from({ length: 1000 }, (_, i) => [i % 3, 1 + ((i * 7919) % 50)]);
  const made = lanes([{ start: 5, items: [] }, { start: 10, items }]);
  const ends = items.reduce<number[]>((all, [, length]) => [...all, (all[all.length - 1] ?? 10) + length], []);
  const slowly = (from: number, to: number): number[] => {
    const sums = [0, 0, 0];
    items.forEach(([code, length], i) => (sums[code] += Math.max(0, Math.min(ends[i], to) - Math.max(ends[i] - length, from))));
    return sums;
  };
  for (const [from, to] of [[0, 1e6], [10, 11], [500, 9000], [9999, 10001], [-5, 10]]) {
    assert.deepEqual([...made.sum(1, from, to)], slowly(from, to));
  }
  assert.deepEqual([...made.sum(0, 0, 100)], [0, 0, 0]);
  const bins = levels(made, [0, 1], 0, 20_000, 40, 3);
  for (let bin = 0; bin < 40; bin++) {
    const exact = slowly(bin * 500, (bin + 1) * 500).map((sum) => sum / 500);
    exact.forEach((level, of) => assert.ok(Math.abs(bins[bin * 3 + of] - level) < 1e-5, `bin ${bin}`));
  }
});

test("items are found by time", () => {
  const made = lanes([{ start: 10, items: [[0, 5], [1, 5]] }]);
  assert.deepEqual([9, 10, 14, 15, 19, 50].map((time) => made.at(0, time)), [-1, 0, 0, 1, 1, 1]);
  assert.deepEqual([made.range(0, 0, 12), made.range(0, 16, 30), made.range(0, 0, 5)], [[0, 1], [1, 2], [0, 0]]);
});

test("a link shows the same", () => {
  const state: State = {
    cpus: 2, from: 100, to: 5000, selection: [200, 300], picked: { run: "predicted", lane: 7, time: 250 }, tab: "what-if", theme: "dark", search: "a & b #",
  };
  const cpus = ["1", "2", "inf"];
  assert.deepEqual({ ...state, ...fromLink(`#${toLink(state, cpus, 9000)}`, cpus) }, state);
  assert.deepEqual(fromLink("#cpus=3&t=9-1&at=x,1,2&tab=<b>&theme=evil&select=1", cpus), {});
});

test("zooming stays within the run", () => {
  assert.deepEqual(zoomed(0, 1000, 500, 0.5, 1000), [250, 750]);
  assert.deepEqual(zoomed(250, 750, 500, 100, 1000), [0, 1000]);
  const [from, to] = zoomed(0, 1000, 0, 1e-9, 1000);
  assert.deepEqual([from, to], [0, 100]);
  assert.deepEqual(moved(200, 400, -500, 1000), [0, 200]);
  assert.deepEqual(moved(200, 400, 5000, 1000), [800, 1000]);
});

test("many threads are groups that open", () => {
  assert.deepEqual(["worker-12", "pool/3", "T1", "77", "main", "io-7/28451", "/9"].map(family), ["worker", "pool", "T", "77", "main", "io", "/9"]);
  const names = ["main", ...Array.from({ length: 100 }, (_, i) => `worker-${i}`)];
  assert.equal(rows(names, new Set()).length, 2);
  const open = rows(names, new Set(["worker"]));
  assert.equal(open.length, 102);
  assert.deepEqual(open[1].group?.length, 100);
  assert.equal(rows(names.slice(0, 40), new Set()).length, 40);
});

test("words are those of the screens", () => {
  assert.deepEqual([0, 950, 999.6, 4_560_000, 999_600_000, -2_500_000].map(duration), ["0 ns", "950 ns", "1.00 µs", "4.56 ms", "1.00 s", "-2.50 ms"]);
  assert.deepEqual([0, 0.034, 0.5, 1.2].map(percent), ["0 %", "3.4 %", "50 %", "120 %"]);
  assert.equal(instant(1_234_567, 1000), "1.235 ms");
  assert.equal(short("std::map<int, int>::at(int const&) const"), "std::map<int, int>::at");
  assert.equal(histogram([[1, 700], [4, 300]]), "1: 70 %, 4: 30 %");
});

test("normalized time of a range is divided by the threads that compute meanwhile", () => {
  // One thread computes from 0 to 100, and one from 50 to 150. Code 1 means running.
  const of = lanes([{ start: 0, items: [[1, 100], [2, 50]] }, { start: 50, items: [[1, 100]] }]);
  const run = { lanes: of, length: 150, quantum: 0, threads: [0, 1] };
  assert.deepEqual([...normalized(run, 0, 150)!.lanes], [75, 75]);
  assert.deepEqual([...normalized(run, 80, 120)!.lanes], [10, 30]);
  assert.deepEqual([...normalized(run, 150, 160)!.lanes], [0, 0]);
  assert.equal(normalized(run, 0, 150)!.computing(60), 2);
});

test("a row of requests has the causes that take their time, functions together", () => {
  const spent = [
    { kind: "computing", name: "parse", share: 0.25 }, { kind: "lock", name: "registry.gate", share: 0.4 },
    { kind: "computing", name: "digest", share: 0.3 }, { kind: "no_cpu", name: "", share: 0.05 }, { kind: "timer", name: "sleep", share: 0.001 },
  ];
  const end = { served: true, name: "port 80", per_second: 2250.4, open: 1.52, mean_ns: 390e3, p99_ns: 560e3, spent };
  const asked = { ...end, served: false, name: "10.0.0.7:5432", per_second: 2.04, spent: undefined };
  const report = { limit: { requests: [end, asked] }, results: [], findings: [], trust: {} };
  assert.deepEqual(requests(report).rows.map((row) => row.cells.map((cell) => cell.text)), [
    ["port 80", "answered", "2,250", "1.5", "390 µs", "560 µs", "55 % computing, 40 % registry.gate, 5 % no cpu"],
    ["10.0.0.7:5432", "sent", "2.0", "1.5", "390 µs", "560 µs", ""],
  ]);
  assert.deepEqual(requests({ results: [], findings: [], trust: {} }).rows, [], "no server");
});
