// Drives pages in headless Chromium: `node drive.mjs WHAT PAGE.html [REPORT.json]`. Prints its results as JSON. If
// something is wrong, it fails and says what. CHROMIUM names the browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [what, file, ...rest] = process.argv.slice(2);
const address = file.startsWith("http") ? file : pathToFileURL(file).href;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

/** Opens a page. The page must print no messages, send no requests except allowed ones, and open no windows. */
async function opened(link = "", viewport = { width: 1280, height: 900 }, allowed = () => false) {
  const page = await browser.newPage({ viewport });
  const said = [];
  page.on("console", (message) => said.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  page.on("request", (request) => request.url().split("#")[0] === address || allowed(request.url()) || said.push(`request: ${request.url()}`));
  page.on("dialog", (dialog) => said.push(`dialog: ${dialog.message()}`));
  page.on("popup", () => said.push("popup"));
  await page.goto(address + link);
  await page.waitForFunction(() => document.documentElement.dataset.ready, null, { timeout: 60_000 });
  return { page, quiet: () => assert.deepEqual(said, []) };
}

const tab = (page, id) => page.click(`#tab-${id}`);
/** The cells of a table: their texts, and their numbers if they have any. */
const cells = (page, id) => page.$$eval(`#table-${id} tbody tr`, (rows) => rows.map((row) => [...row.children].map((cell) => ({
  text: cell.textContent, title: cell.title, ...(cell.dataset.value === undefined ? {} : { value: Number(cell.dataset.value) }),
}))));
const fact = (page, name) => page.evaluate((wanted) => {
  const found = [...document.querySelectorAll(".details dt")].find((term) => term.textContent === wanted);
  return found?.nextElementSibling?.textContent ?? null;
}, name);
const state = (page) => page.evaluate(() => ({ ...window.longpole.store.state }));

/** Checks that each number in the page equals the one of `report --json`. */
async function numbers() {
  const report = JSON.parse(readFileSync(rest[0], "utf8"));
  const { page, quiet } = await opened();
  let compared = 0;
  for (const more of await page.$$(".table > button:not([hidden])")) await more.click();
  const functions = new Map((await cells(page, "functions")).map((row) => [row[0].title, row]));
  report.results.forEach((result, place) => {
    for (const row of result.functions) {
      assert.equal(functions.get(row.function)[2 + place].value, row.tet_ns, `${row.function} on ${result.cpus}`);
      compared++;
    }
  });
  const waits = new Map((await cells(page, "waits")).map((row) => [row[0].text, row]));
  report.results.forEach((result, place) => {
    for (const row of result.waits ?? []) {
      const name = [row.kind.replaceAll("_", " "), row.object].filter(Boolean).join(" ");
      assert.equal(waits.get(name)[1 + place].value, row.weighted_ns, name);
      compared++;
    }
  });
  await tab(page, "locks");
  const locks = new Map((await cells(page, "locks")).map((row) => [row[0].title, row]));
  for (const [at, row] of (report.locks ?? []).entries()) {
    const shown = locks.get(row.lock);
    assert.deepEqual([1, 2, 3, 4].map((cell) => shown[cell].value), [row.acquisitions, row.contended, row.wait_ns, row.hold_ns]);
    report.results.forEach((result, place) => assert.equal(shown[6 + place].value, result.locks[at].held_ns));
    compared++;
  }
  await tab(page, "curve");
  const curve = await cells(page, "curve");
  report.results.forEach((result, place) => assert.equal(curve[place][1].value, result.time_ns, `time on ${result.cpus}`));
  const stretches = await page.evaluate(() => {
    const { model } = window.longpole;
    return model.doc.cpus.map((_, place) => {
      const { lanes, isOne } = model.path(place);
      return isOne ? lanes.end[0] : null;
    });
  });
  // The path must take the whole predicted time, to half a nanosecond.
  report.results.forEach((result, place) => stretches[place] === null || assert.ok(Math.abs(stretches[place] - result.time_ns) <= 1));
  quiet();
  return { compared, sure: await page.textContent("#sure") };
}

/** Does what a person does: zoom, move, select, use a slider, click, follow, search, open a link, change colours. */
async function use() {
  const { page, quiet } = await opened();
  const canvas = page.locator("canvas").nth(1);
  const box = await canvas.boundingBox();
  const whole = await state(page);
  await page.mouse.move(box.x + 500, box.y + 10);
  await page.mouse.down();
  await page.mouse.up();
  for (const key of ["w", "w", "d", "a", "s"]) await page.keyboard.press(key);
  const zoomedIn = await state(page);
  assert.ok(zoomedIn.to - zoomedIn.from < (whole.to - whole.from) * 0.9, "w zooms in");
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -600);
  await page.keyboard.up("Control");
  await page.waitForFunction((width) => window.longpole.store.state.to - window.longpole.store.state.from < width * 0.9, zoomedIn.to - zoomedIn.from);
  await page.click("text=whole run");

  const touch = await page.context().newCDPSession(page);
  const fingers = (type, ...at) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: at.map((x, id) => ({ x: box.x + x, y: box.y + 30, id })) });
  await fingers("touchStart", 400, 500);
  for (const apart of [20, 60, 100]) await fingers("touchMove", 400 - apart, 500 + apart);
  await fingers("touchEnd");
  await page.waitForFunction((width) => window.longpole.store.state.to - window.longpole.store.state.from < width * 0.7, whole.to - whole.from);
  await page.click("text=whole run");

  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 300, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 600, box.y + 30, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const chosen = await state(page);
  assert.ok(chosen.selection && chosen.tab === "selection", "dragging with shift selects");
  // The tables of the selection appear with the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.ok((await cells(page, "selected-threads")).length > 0);
  // At each time the predicted run does something on the critical path. So the parts add up to the range, up to the end
  // of that run.
  const parts = (await cells(page, "selected-path")).reduce((all, row) => all + row[1].value, 0);
  const predicted = await page.evaluate(() => window.longpole.model.path(window.longpole.store.state.cpus).lanes.end[0]);
  const within = Math.max(0, Math.min(predicted, chosen.selection[1]) - chosen.selection[0]);
  assert.ok(Math.abs(parts - within) < 2, `${parts} of ${within}`);
  // The states of each thread must add up to at most the range.
  for (const row of await cells(page, "selected-threads")) {
    const sum = row.slice(1, -1).reduce((all, cell) => all + cell.value, 0);
    assert.ok(sum <= chosen.selection[1] - chosen.selection[0] + 1, `${row[0].text}: ${sum}`);
  }
  // The normalized times must add up to the time in which any thread computes.
  const normalized = (await cells(page, "selected-threads")).reduce((all, row) => all + row.at(-1).value, 0);
  assert.ok(normalized > 0 && normalized <= chosen.selection[1] - chosen.selection[0] + 1, `${normalized}`);
  const divided = (await cells(page, "selected-functions")).reduce((all, row) => all + (row[3].value ?? 0), 0);
  assert.ok(divided > 0 && divided <= chosen.selection[1] - chosen.selection[0] + 1, `${divided}`);
  await tab(page, "slack");
  assert.match(await page.textContent("#whole"), /at the run's end/, "why a range has no slack of its own");
  await tab(page, "functions");
  assert.match(await page.textContent("#whole"), /summed up there is in Selection/);
  await tab(page, "paths");
  await page.click("#table-paths tr.chooses");
  assert.match(await page.textContent("nav output"), /unlimited/, "a path lies on unlimited CPUs");
  const marked = await page.evaluate(() => {
    const { way } = window.longpole.stage;
    return { stays: way.length, end: way.at(-1)?.to, longest: window.longpole.model.doc.paths.length_ns };
  });
  assert.ok(marked.stays > 0 && Math.abs(marked.end - marked.longest) < 2, JSON.stringify(marked));
  await tab(page, "selection");

  await page.fill("#cpus", "0");
  assert.match(await page.textContent("nav output"), /^1 CPU$/);
  const cpus = await page.evaluate(() => window.longpole.model.doc.cpus.length);
  await page.fill("#cpus", String(cpus - 1));
  assert.match(await page.textContent("nav output"), /unlimited/);
  await page.fill("#cpus", "1");
  const place = await page.evaluate(() => {
    const { model } = window.longpole;
    // The middle of the longest stretch of the path in which a thread computes.
    const { lanes } = model.path(1);
    let best = { length: 0, lane: 0, time: 0 };
    for (let item = 0; item < lanes.first[1]; item++) {
      const thread = model.doc.path_colours[lanes.code[item]].thread;
      const length = lanes.endOf(0, item) - lanes.start[item];
      if (thread !== undefined && length > best.length) best = { length, lane: thread, time: lanes.start[item] + length / 2 };
    }
    return best;
  });
  await page.evaluate(({ lane, time }) => window.longpole.go({ run: "predicted", lane, time }), place);
  assert.ok(await fact(page, "critical path"), "on the path");
  const before = (await state(page)).picked.time;
  await page.click("text=next cause");
  const after = (await state(page)).picked.time;
  assert.ok(after > before, "the next cause is later");
  await page.click("text=previous cause");
  assert.equal(Math.round((await state(page)).picked.time), Math.round(before));

  await page.click("text=whole run");
  await canvas.hover({ position: { x: 500, y: 33 } });
  assert.match(await canvas.getAttribute("title"), /./, "pointing tells what it is");
  await canvas.click({ position: { x: 500, y: 33 } });
  assert.ok(await fact(page, "thread"), "a click tells what it is");
  const woken = await page.evaluate(() => {
    const { measured: run } = window.longpole.model;
    for (let lane = 0; lane < run.lanes.count; lane++) {
      for (let item = run.lanes.first[lane]; item < run.lanes.first[lane + 1]; item++) {
        if (run.lanes.more[item] > 0) return { lane, time: run.lanes.start[item], waker: run.lanes.more[item] - 1 };
      }
    }
    return null;
  });
  if (woken) {
    await page.evaluate(({ lane, time }) => window.longpole.go({ run: "measured", lane, time }), woken);
    assert.ok(await fact(page, "woken by"));
    await page.click(".details dd button");
    assert.equal((await state(page)).picked.lane, woken.waker, "to who woke it");
  }
  await page.fill("#search", await page.evaluate(() => window.longpole.model.doc.report.results[0].functions[0].function));
  await page.press("#search", "Enter");
  for (const theme of ["dark", "safe", "light"]) await page.selectOption("select", theme);
  for (const id of await page.$$eval("[role=tab]", (tabs) => tabs.map((of) => of.id.slice(4)))) await tab(page, id);
  await tab(page, "what-if");
  const slider = page.locator(".change input").first();
  if (await slider.count()) {
    await slider.fill("2");
    assert.match(await page.locator(".change output").first().textContent(), /instead of/);
  }
  const link = await page.evaluate(() => location.hash);
  const left = await state(page);
  quiet();
  const again = await opened(link);
  assert.deepEqual(JSON.parse(JSON.stringify(await state(again.page))), JSON.parse(JSON.stringify({ ...left, from: Math.round(left.from), to: Math.round(left.to),
    picked: left.picked && { ...left.picked, time: Math.round(left.picked.time) }, selection: left.selection && left.selection.map(Math.round) })));
  again.quiet();
  const narrow = await opened(link, { width: 390, height: 800 });
  for (const id of await narrow.page.$$eval("[role=tab]", (tabs) => tabs.map((of) => of.id.slice(4)))) {
    await tab(narrow.page, id);
    assert.equal(await narrow.page.evaluate(() => document.documentElement.scrollWidth), 390, `${id}: nothing is beside the screen`);
  }
  await narrow.page.selectOption("select", "dark");
  const colours = () => narrow.page.evaluate(() => document.querySelector("[data-theme]").dataset.theme);
  await narrow.page.evaluate(() => window.addEventListener("beforeprint", () => (window.printed = document.querySelector("[data-theme]").dataset.theme)));
  await narrow.page.pdf();
  assert.deepEqual([await narrow.page.evaluate(() => window.printed), await colours()], ["light", "dark"], "paper is white");
  narrow.quiet();
  return { link };
}

/** Counts the runs in the table, and the crosses in the picture of the speed-up. */
async function points() {
  const { page, quiet } = await opened("#tab=curve");
  const found = { rows: (await cells(page, "points")).map((row) => ({ file: row[0].text, cpus: row[1].value, time: row[2].value })), crosses: await page.locator("svg path.measured").count() };
  quiet();
  return found;
}

/** Opens the page, which must print and run nothing. Returns its title, and the number of names in it. */
async function open() {
  const { page, quiet } = await opened();
  for (const id of await page.$$eval("[role=tab]", (tabs) => tabs.map((of) => of.id.slice(4)))) await tab(page, id);
  const found = await page.evaluate(() => ({
    title: document.title,
    threads: window.longpole.model.doc.names.threads.map((of) => of.name),
    functions: window.longpole.model.doc.names.functions.map((of) => of.name),
    scripts: document.scripts.length,
  }));
  quiet();
  return found;
}

/** The page of `top --listen` must request only its events, and must show their content. */
async function live() {
  const { origin, search } = new URL(address);
  const { page, quiet } = await opened("", undefined, (url) => url === `${origin}/events${search}`);
  const found = {
    title: await page.title(),
    limit: await page.textContent("header"),
    times: (await cells(page, "predicted"))[0].slice(1).map((cell) => cell.value),
    functions: (await cells(page, "functions")).map((row) => row[0].title),
  };
  // A chosen column must stay chosen when the next report arrives.
  await page.click("#table-functions thead th:nth-child(2) button");
  await page.evaluate(() => window.longpole.show());
  assert.equal(await page.getAttribute("#table-functions thead th:nth-child(2)", "aria-sort"), "descending");
  await page.click("text=pause");
  await page.click("text=go on");
  quiet();
  return found;
}

/** A click must lead to the line of the source. */
async function source() {
  const { page, quiet } = await opened();
  const found = await page.evaluate(() => {
    const { model } = window.longpole;
    const { samples } = model.measured;
    for (let lane = 0; lane + 1 < samples.first.length; lane++) {
      for (let i = samples.first[lane]; i < samples.first[lane + 1]; i++) {
        const stack = model.doc.names.stacks[samples.stack[i]] ?? [];
        const line = stack.length ? model.doc.names.places[stack[0]][1] : null;
        if (line && model.doc.sources[line.slice(0, line.lastIndexOf(":"))]) return { lane, time: samples.time[i], line };
      }
    }
    return null;
  });
  assert.ok(found, "a sample whose source is in the page");
  await page.evaluate(({ lane, time }) => window.longpole.go({ run: "measured", lane, time }), found);
  const here = await page.textContent(".source .here");
  quiet();
  return { line: found.line, here };
}

/** Measures the milliseconds until the page is ready, and the time to draw it while it is moved. */
async function speed() {
  const begun = Date.now();
  const { page, quiet } = await opened();
  const waited = Date.now() - begun;
  const found = await page.evaluate(async () => {
    const { store, stage, model } = window.longpole;
    const times = [];
    for (const share of [1, 0.3, 0.03]) {
      for (let step = 0; step < 30; step++) {
        const from = (model.length * (1 - share) * step) / 30;
        store.set({ from, to: from + model.length * share });
        times.push(stage.draw());
        await new Promise(requestAnimationFrame);
      }
    }
    times.sort((a, b) => a - b);
    return { median_ms: times[times.length >> 1], worst_ms: times[times.length - 1], items: model.measured?.lanes.start.length ?? 0 };
  });
  quiet();
  return { ready_ms: Number(await page.evaluate(() => document.documentElement.dataset.ready)), opened_ms: waited, ...found };
}

/** Draws pictures for the documents: `pictures PAGE OUT.png [LINK] [WIDTH HEIGHT]`. */
async function pictures() {
  const [out, link = "", width = "1280", height = "900"] = rest;
  const { page, quiet } = await opened(link, { width: Number(width), height: Number(height) });
  await page.waitForTimeout(300);
  await page.screenshot({ path: out });
  quiet();
  return { out };
}

/** Opens a file of longpole's in speedscope's page. Returns the functions of each profile with their own time in ns,
 * from the page's table. */
async function speedscope() {
  // The table contains all rows only if all rows are visible.
  const page = await browser.newPage({ viewport: { width: 1280, height: 8000 } });
  const wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", (dialog) => dialog.dismiss().then(() => wrong.push(dialog.message())));
  await page.goto(address);
  await page.setInputFiles("input[type=file]", rest[0]);
  await page.click("text=Sandwich");
  const count = Number((await page.textContent("text=/^\\(1\\/[0-9]+\\)$/")).split(/[/)]/)[1]);
  const profiles = [];
  for (let place = 1; place <= count; place++) {
    const title = page.locator(`text="(${place}/${count})"`).locator("..");
    const name = (await title.textContent()).replace(/ \(.*/, "");
    // A row has a total time, an own time and a name.
    const rows = await page.$$eval("tr", (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)).filter((row) => /%\)$/.test(row[1])));
    profiles.push({ name, functions: rows.map(([, own, symbol]) => ({ symbol, own_ns: nanoseconds(own) })) });
    await page.keyboard.press("n");
  }
  assert.deepEqual(wrong, []);
  return profiles;
}

/** The nanoseconds in a text such as `1.25ms (3%)`. */
function nanoseconds(text) {
  const [, number, unit] = /^([0-9.:]+)([a-zµ]*)/.exec(text);
  return Number(number) * { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit];
}

try {
  const found = await { speedscope, numbers, use, points, open, live, source, speed, pictures }[what]();
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
