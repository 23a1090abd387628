// Opens reports in a real Chromium, as a person would: light, dark, narrow, printed, and strange ones.
//   node test/e2e.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { launch, screenshots, shot, shown } from "./kit.mjs";
import { matrices } from "./matrix.mjs";
import {
  empty,
  hostile,
  hour,
  difference,
  imagined,
  parts,
  real,
  single,
  snapshots,
} from "./reports.mjs";

const folder = screenshots("e2e");
const dist = (file) =>
  gunzipSync(readFileSync(new URL(`../dist/${file}.gz`, import.meta.url))).toString();
const pages = { report: dist("report.html"), matrix: dist("matrix.html") };

function file(name, report, kind) {
  const path = join(folder, `${name}.html`),
    page = pages[kind],
    slot = `id="hightide-${kind}"><`;
  assert.ok(page.includes(slot), `the ${kind} page has a place for its data: npm run build`);
  const data = report === null ? "" : gzipSync(JSON.stringify(report)).toString("base64");
  writeFileSync(path, page.replace(slot, `${slot.slice(0, -1)}${data}<`));
  return path;
}

const browser = await launch();
let passed = 0;

async function look(
  name,
  report,
  { width = 1280, scheme = "light", motion = "no-preference", kind = "report", hash = "" },
  check,
) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    reducedMotion: motion,
  });
  const tab = await context.newPage();
  const complaints = [];
  tab.on(
    "console",
    (m) =>
      ["error", "warning"].includes(m.type()) &&
      !m.text().includes("willReadFrequently") /* this test reads pixels */ &&
      complaints.push(m.text()),
  );
  tab.on("pageerror", (e) => complaints.push(e.message));
  tab.on("dialog", (d) => {
    complaints.push("a dialog");
    void d.dismiss();
  });
  tab.on(
    "request",
    (r) =>
      r.url().startsWith("file:") ||
      r.url().startsWith("data:") ||
      complaints.push(`asks for ${r.url()}`),
  );
  await tab.goto(`file://${file(name, report, kind)}${hash && `#${hash}`}`);
  await tab.waitForSelector("#app > *"); // the report is unpacked
  await drawn(tab);
  await check(tab, name);
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
  await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  await context.close();
  passed++;
}

/** The words of a headline: the page's title has them all, one figure in large, and the rest as a sentence below it. */
const wordsOf = (text) =>
  text
    .replaceAll("`", "")
    .toLowerCase()
    .match(/[\p{L}\p{N}][\p{L}\p{N}.,:_/-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu);
async function titled(tab, { clauses }) {
  assert.deepEqual(wordsOf(await tab.locator("h1").textContent()), wordsOf(clauses.join("; ")));
  const large = await tab.locator("h1").evaluate((h1) =>
    [...h1.childNodes]
      .filter((n) => !n.className)
      .map((n) => n.textContent)
      .join(""),
  );
  assert.ok(
    (large.match(/\d[\d.,]* (?:[KMGT]?i?B|s|ms|h|%)(?![A-Za-z])/g) ?? []).length <= 1,
    `one figure in large: ${large}`,
  );
}

/** Two frames: charts draw in the first. */
const drawn = (tab) =>
  tab.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))),
      ),
  );

/** Where an element is once it was scrolled to and has come to rest: pages scroll smoothly. */
async function resting(tab, element) {
  await element.scrollIntoViewIfNeeded();
  for (let before; ;) {
    await drawn(tab);
    const box = await element.boundingBox();
    if (before && box.x === before.x && box.y === before.y) return box;
    before = box;
  }
}

/** Distinct colours on a chart: a blank canvas has one. */
const colours = (tab, chart) =>
  tab.evaluate((chart) => {
    const canvas = document.querySelector(`${chart} canvas`);
    if (!canvas || !canvas.width) return 0;
    const pixels = new Uint32Array(
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer,
    );
    return new Set(pixels).size;
  }, chart);

/** How many pixels of the tracks have a colour of the theme, give or take. */
const painted = (tab, name) =>
  tab.evaluate((name) => {
    const [r, g, b] = getComputedStyle(document.documentElement)
      .getPropertyValue(`--${name}`)
      .trim()
      .match(/[0-9a-f]{2}/gi)
      .map((v) => parseInt(v, 16));
    let n = 0;
    for (const canvas of document.querySelectorAll("#timeline .plot canvas")) {
      if (canvas.dataset.drawn === undefined) continue;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4)
        if (
          data[i + 3] > 200 &&
          Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12
        )
          n++;
    }
    return n;
  }, name);

/** What the tracks show, ns since the run began. */
const seen = async (tab) =>
  (await tab.locator("#timeline").getAttribute("data-seen")).split("-").map(Number);

const theme = (tab) => tab.evaluate(() => document.documentElement.dataset.theme);

/** What every reader must see of the real report, whatever the screen. */
async function whole(tab) {
  await titled(tab, real.headline);
  const first = real.findings[0],
    where = tab.locator(".finding .where").first();
  assert.ok(await where.isVisible());
  assert.match(
    await where.innerText(),
    new RegExp(`${first.file.split("/").at(-1)}:${first.line}`),
  );
  const cut = await where.locator("b").evaluate((b) => b.scrollWidth > b.clientWidth + 1);
  assert.ok(!cut, "the line is shown in full");
  for (const chart of ["#timeline .of-curves", "#growth"])
    assert.ok((await colours(tab, chart)) > 20, `${chart} is drawn`);
  assert.ok((await painted(tab, "rss")) > 300, "the leading curve is drawn in its colour");
  assert.ok((await painted(tab, "phase-backward")) > 300, "the phases are drawn");
  assert.ok(
    (await tab.locator("table tbody tr").count()) >= real.tables.length,
    "the tables have rows",
  );
  assert.ok((await tab.locator(".map div").count()) > 3, "the lines are drawn as areas");
  assert.match(
    await tab.locator(".card", { hasText: "PSS" }).innerText(),
    /798 MiB\s+estimated\s+shared pages once, ± 3.99 MiB/,
    "PSS stands with its error",
  );
}

await look("light", real, {}, async (tab) => {
  await whole(tab);
  assert.equal(await theme(tab), "light");
  await tab.locator("#table-phases th.number button").first().click();
  assert.equal(await tab.locator("#table-phases th[aria-sort=descending]").count(), 1);
  await tab.locator(".finding .where").first().click();
  await tab.locator(".finding .copied", { hasText: "copied" }).first().waitFor();
  await tab.locator(".finding summary").first().click();
  assert.ok(await tab.locator(".finding .stack li.own").first().isVisible(), "the stack opens");
});

await look("timeline", real, {}, async (tab) => {
  const reading = tab.locator("#timeline .reading"),
    back = tab.getByRole("button", { name: "Show the whole run" }),
    track = (title) => tab.locator("#timeline .track", { hasText: title }).first();
  const whole = await seen(tab),
    box = await resting(tab, track("Host memory").locator(".plot"));
  assert.equal(await tab.locator("#timeline .group-head").first().innerText(), "The whole run");
  await tab.mouse.move(box.x + box.width * 0.5, box.y + 30);
  await drawn(tab);
  assert.match(
    await reading.innerText(),
    /^at .* s · step \d+/,
    "the line says when, and which step",
  );
  assert.match(
    await track("Host memory").innerText(),
    /RSS\s+[\d.]+ [MG]iB\s+PSS\s*estimated\s+[\d.]+ [MG]iB/,
    "and the gutter the values there",
  );
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
  await tab.mouse.up();
  const range = tab.locator("#timeline .range");
  assert.match(
    await range.innerText(),
    /Host memory: RSS[\s\S]*(forward|backward) \d+ %|(forward|backward) \d+ %[\s\S]*Host memory: RSS/,
    "a drag chooses a stretch, of which the figures are shown",
  );
  await tab.getByRole("button", { name: "Zoom to it" }).click();
  await drawn(tab);
  const [from, to] = await seen(tab);
  assert.ok(
    Math.abs((to - from) / (whole[1] - whole[0]) - 0.1) < 0.01,
    `a tenth is shown: ${from} to ${to}`,
  );
  assert.ok((await painted(tab, "phase-forward")) > 300, "zoomed in, the phases are there");
  await shot(tab, join(folder, "zoomed.png"));
  await tab.getByRole("button", { name: "Close" }).click();
  await back.click();
  await drawn(tab);
  assert.ok(!(await back.isVisible()), "the whole run is shown again");
  for (const [key, shown] of [
    ["w", true],
    ["f", false],
    ["s", false],
  ]) {
    await tab.keyboard.press(key);
    await drawn(tab);
    assert.equal(await back.isVisible(), shown, key);
  }
  await tab.keyboard.press("/");
  await tab.keyboard.type("faults");
  assert.deepEqual(
    await tab
      .locator("#timeline .groups .track-title")
      .evaluateAll((all) => [...new Set(all.map((t) => t.firstChild.textContent))]),
    ["Page faults"],
  );
  await tab.keyboard.press("Escape");
  assert.ok((await tab.locator("#timeline .track").count()) > 4);
});

await look("dark", real, { scheme: "dark" }, async (tab) => {
  await whole(tab);
  assert.equal(await theme(tab), "dark");
  await tab.keyboard.press("t");
  assert.equal(await theme(tab), "light");
  await tab.locator(".toggle").click();
  await drawn(tab);
  assert.equal(await theme(tab), "dark");
  await whole(tab);
});

await look("narrow", real, { width: 390 }, whole);

await look("printed", real, { scheme: "dark" }, async (tab, name) => {
  const pdf = await tab.pdf({
    path: join(folder, `${name}.pdf`),
    format: "A4",
    printBackground: true,
  });
  assert.ok(pdf.length > 50_000, "the print has pictures");
  await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await tab.emulateMedia({ media: "print" });
  await drawn(tab);
  assert.equal(await theme(tab), "light", "paper is white");
  const widths = await tab.evaluate(() =>
    [...document.querySelectorAll(".chart canvas, #timeline .plot canvas")].map(
      (c) => c.getBoundingClientRect().width,
    ),
  );
  assert.ok(
    widths.length > 1 && widths.every((w) => w > 280 && w <= 690),
    `charts fit on paper: ${widths}`,
  );
  assert.ok(
    await tab.locator(".finding .stack li").first().isVisible(),
    "what is folded is printed",
  );
  assert.ok(!(await tab.locator(".bar").isVisible()), "what is for clicking is not");
  await tab.emulateMedia({ media: "screen" });
  await tab.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await theme(tab), "dark");
});

await look("empty", empty, {}, async (tab) => {
  assert.equal(await tab.locator("h1").innerText(), "No memory was observed.");
  assert.equal(await tab.locator("canvas, table").count(), 0);
  assert.ok(await tab.locator(".banner").isVisible(), "it says that the end is missing");
  const text = await tab.locator("body").innerText();
  assert.ok(!/undefined|null|NaN|1970|Infinity/.test(text), `no holes: ${text}`);
});

await look("single", single, { scheme: "dark" }, async (tab) => {
  assert.equal(await tab.locator(".outcome").innerText(), "SIGKILL");
  assert.ok((await painted(tab, "rss")) > 10, "one sample is a dot");
  assert.ok(!/undefined|NaN/.test(await tab.locator("body").innerText()));
});

await look("imagined", imagined, { scheme: "dark" }, async (tab) => {
  const bar = tab.locator("#capacity .stack-bar span"),
    whole = (await tab.locator("#capacity .stack-bar").boundingBox()).width;
  assert.equal(await bar.count(), Object.keys(parts).length);
  for (const [i, [name, size]] of Object.entries(parts).entries()) {
    assert.match(await bar.nth(i).getAttribute("title"), new RegExp(`^${name}: `));
    assert.ok(
      Math.abs((await bar.nth(i).boundingBox()).width / whole - size / 22) < 0.01,
      `${name} has its share of the bar`,
    );
  }
  assert.ok(
    !(await tab.locator(".card", { hasText: "Step time" }).count()),
    "time on a GPU that is not there is no figure",
  );
});

await look("hostile", hostile, { width: 800 }, async (tab) => {
  assert.equal(await tab.locator("h1 b, h1 i, img").count(), 0, "texts stay texts");
});

await look("hour", hour, { motion: "reduce" }, async (tab, name) => {
  assert.ok(
    statSync(join(folder, `${name}.html`)).size < 1e6,
    "an hour of eight processes is below a megabyte",
  );
  const ready = await tab.evaluate(
    () => performance.getEntriesByType("navigation")[0].loadEventEnd,
  );
  assert.ok(ready < 30_000, `the page is there after ${ready} ms`);
  assert.ok((await painted(tab, "limit")) > 100, "the device's memory is a line");
  assert.deepEqual(
    await tab
      .locator("#timeline .group-head")
      .evaluateAll((all) => all.slice(0, 3).map((b) => b.firstChild.textContent)),
    ["The whole run", "rank 3", "nvidia:0"],
    "the rank at the peak comes first",
  );
  assert.equal(
    await tab.locator(".finding:visible").count(),
    8,
    "the worst findings are shown, the rest folds",
  );
  const rows = tab.locator("#table-processes tbody tr");
  assert.equal(await rows.count(), 12);
  await tab.locator("#table-processes input").fill("rank");
  assert.equal(await rows.count(), 8, "a filter finds rows");
  await tab.locator("#table-processes input").fill("");
  await tab.locator("#table-processes .more").click();
  assert.equal(await rows.count(), 308);
  await tab.locator("#timeline select").selectOption("quantity");
  assert.ok(
    await tab.locator("#timeline .group-head", { hasText: "Use of the device" }).count(),
    "by quantity all devices are together",
  );
});

const quoted = {
  ...real,
  stacks: real.stacks.map((s) => ({
    ...s,
    frames: s.frames.map((f) =>
      f.function === "train" ? { ...f, source: "loss = model(<b>)" } : f,
    ),
  })),
};
await look("heap-flames", quoted, {}, async (tab) => {
  const flame = tab.locator("#heap-flames figure"),
    press = (name) => flame.getByRole("button", { name, exact: true }).click(),
    bars = flame.locator(".icicle button"),
    title = () => flame.locator("figcaption > span").first().innerText();
  assert.equal(await title(), "424 MiB: bytes held at the peak");
  assert.match(await bars.nth(1).getAttribute("title"), /^main\n/);
  await press("held at the end");
  assert.equal(await title(), "401 MiB: bytes held at the last reading");
  await press("freed again");
  assert.equal(await title(), "249 MiB: bytes allocated and freed again");
  assert.equal(
    await flame.getByRole("button", { name: "call order" }).count(),
    0,
    "a recording does not know the order of calls",
  );
  await press("held at the peak");
  const lines = (await flame.locator(".icicle .own small").allInnerTexts()).filter((text) =>
    /^digits_leak\.py:\d+$/.test(text),
  );
  assert.ok(
    new Set(lines).size > 1,
    `calls of one function are told apart by their lines: ${lines}`,
  );
  assert.equal(
    await flame.locator(".icicle .own code").first().innerText(),
    "loss = model(<b>)",
    "a call says its line",
  );
  await press("functions");
  const rows = flame.locator(".functions tbody tr"),
    first = () => rows.first().innerText();
  await tab.locator("#heap-flames .reading", { hasText: "Choose a function" }).waitFor();
  const own = await first();
  await press("With callees");
  assert.notEqual(await first(), own);
  assert.match(await first(), /main/, "main calls everything");
  assert.equal(await flame.locator('th[aria-sort="descending"]').innerText(), "With callees");
  await rows.locator("button", { hasText: "forward" }).first().click();
  assert.equal(await flame.locator(".icicle").count(), 2, "its callers and its callees");
  assert.ok(
    await flame.locator(".functions .picked button").evaluate((e) => e === document.activeElement),
    "the focus stays on the function",
  );
  assert.match(await bars.last().locator("xpath=..").getAttribute("aria-label"), /Calls|Heap/);
});

for (const width of [390])
  await look(`heap-flames-${width}`, real, { width, scheme: "dark" }, async (tab) => {
    await tab.locator("#heap-flames").getByRole("button", { name: "functions" }).click();
    await tab.locator("#heap-flames .functions tbody button").first().click();
    assert.ok((await tab.locator("#heap-flames .icicle button").count()) > 1);
  });

/** Pixels of a canvas that have a colour of the theme, give or take. */
const inked = (tab, canvas, name) =>
  canvas.evaluate((canvas, name) => {
    const [r, g, b] = getComputedStyle(document.documentElement)
      .getPropertyValue(`--${name}`)
      .trim()
      .match(/[0-9a-f]{2}/gi)
      .map((v) => parseInt(v, 16));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4)
      if (
        data[i + 3] > 200 &&
        Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12
      )
        n++;
    return n;
  }, name);

/** What every reader must see of two snapshots. */
async function explained(tab) {
  await titled(tab, snapshots.headline);
  assert.ok(
    !(await tab.locator(".banner, .outcome").count()),
    "nothing is said of a recording's end",
  );
  assert.ok(!/undefined|NaN|Infinity/.test(await tab.locator("body").innerText()));
  for (const [id, canvas] of [
    ["#course", ".u-wrap canvas"],
    ["#segments", "canvas.tape"],
    ["#flames", ".icicle"],
  ]) {
    const tabs = tab.locator(`${id} .tabs button`),
      figure = () => tab.locator(`${id} figure`).first().innerText();
    assert.equal(await tabs.count(), 2, `${id} has a tab for each device`);
    assert.equal(await tab.locator(`${id} ${canvas}`).count(), 1);
    const first = await figure();
    await tabs.nth(1).click();
    assert.notEqual(await figure(), first, `${id}: the other device`);
    await tabs.first().click();
    await drawn(tab);
  }
  const course = tab.locator("#course canvas").first(),
    tape = tab.locator("canvas.tape").first();
  for (const ink of ["curve-3", "curve-0", "phase-backward"])
    assert.ok((await inked(tab, course, ink)) > 200, `the course has ${ink}`);
  assert.ok(
    (await inked(tab, tape, "curve-3")) > 50 && (await inked(tab, tape, "track")) > 500,
    "the segments have parameters and cached memory",
  );
  assert.ok((await tab.locator(".icicle button").count()) > 10);
  const ids = await tab.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
  assert.equal(new Set(ids).size, ids.length, "ids are unique");
}

await look("explain", snapshots, {}, async (tab) => {
  await explained(tab);
  const figure = tab.locator("#course figure").first(),
    reading = figure.locator(".reading"),
    over = figure.locator(".u-over");
  assert.match(await reading.innerText(), /16\.5 MiB allocated/);
  const box = await resting(tab, over);
  await tab.mouse.move(box.x + box.width * 0.2, box.y + 60);
  await drawn(tab);
  assert.match(await reading.innerText(), /^after event \d+/, "the cursor says which event");
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 4 });
  await tab.mouse.up();
  await drawn(tab);
  assert.ok(await figure.locator("figcaption .plain").isVisible(), "a drag zooms");
  assert.match(
    await figure.locator(".asked code").innerText(),
    /^hightide explain leak-a10\.pickle --range \d+:\d+ --html/,
    "and says how to see these events in full",
  );
  await over.dblclick();
  await drawn(tab);
  assert.ok(!(await figure.locator("figcaption .plain").isVisible()));
  await figure.locator(".chart").focus();
  await tab.keyboard.press("+");
  await drawn(tab);
  assert.ok(await figure.locator("figcaption .plain").isVisible(), "plus zooms");
  await tab.keyboard.press("0");
  await drawn(tab);
  await figure.getByRole("button", { name: "by line" }).click();
  assert.match(await figure.locator(".legend").innerText(), /leak-a10\.py:15/);
  await figure.getByRole("button", { name: "by category" }).click();

  const flame = tab.locator("#flames figure").first(),
    top = () => flame.locator(".icicle button").first().getAttribute("title");
  const seen = new Set([await top()]);
  for (const name of ["bytes × time", "allocations", "churn"]) {
    await flame.getByRole("button", { name, exact: true }).click();
    seen.add(await top());
  }
  assert.equal(seen.size, 4, `each measure has its own sum: ${[...seen]}`);
  await flame.getByRole("button", { name: "bytes held" }).click();
  await flame.locator(".icicle button").nth(1).click();
  await drawn(tab);
  assert.ok(!/all stacks/.test(await top()), "a click looks closer");
  await tab.keyboard.press("Escape");
  await drawn(tab);
  assert.match(await top(), /all stacks/);

  const tape = tab.locator("canvas.tape").first(),
    tip = tab.locator(".tip").first();
  await tape.hover({ position: { x: 20, y: 5 } });
  await drawn(tab);
  assert.match(await tip.innerText(), /(B|KiB|MiB) .* at 0x[0-9a-f]+, in segment 1: /);
  await tape.focus();
  for (let i = 0; i < 3; i++) await tab.keyboard.press("ArrowRight");
  assert.ok(
    (await tab.locator(".tip .stack li").count()) > 0,
    "a block says which calls allocated it",
  );
});

for (const width of [1280, 390])
  await look(`diff-${width}`, difference, { width }, async (tab) => {
    const bars = tab.locator(".change li"),
      widths = await tab
        .locator(".change u")
        .evaluateAll((all) => all.map((u) => parseFloat(u.style.width)));
    assert.equal(await bars.count(), 17, "sixteen, and the rest");
    assert.match(await bars.first().innerText(), /line_19\s+\+512 MiB/);
    assert.match(
      await bars.last().innerText(),
      /4 more\s+−3\.00 KiB/,
      "lines 0 to 3: −1, 2, 4 and −8 KiB",
    );
    assert.deepEqual(widths.slice(0, 3), [50, 25, 12.5]);
    assert.deepEqual(
      await tab.locator(".change i").evaluateAll((all) => all.slice(0, 3).map((i) => i.className)),
      ["more", "less", "more"],
    );
  });

await look("explain-dark", snapshots, { scheme: "dark" }, explained);

await look("explain-narrow", snapshots, { width: 390 }, explained);

const filtered = {
  ...snapshots,
  allocators: snapshots.allocators.map((a) => ({ ...a, filter: "leak-a10" })),
};
await look("explain-filtered", filtered, {}, async (tab) => {
  const figure = tab.locator("#course figure").first();
  assert.match(await figure.locator("figcaption").innerText(), /only what matches leak-a10/);
  assert.match(await figure.locator(".reading").innerText(), /16\.5 MiB that match, of/);
});

await look("explain-printed", snapshots, {}, async (tab, name) => {
  const pdf = await tab.pdf({
    path: join(folder, `${name}.pdf`),
    format: "A4",
    printBackground: true,
  });
  assert.ok(pdf.length > 50_000, "the print has pictures");
  await tab.emulateMedia({ media: "print" });
  await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await drawn(tab);
  assert.ok(
    !(await tab.locator("#course .switch").first().isVisible()),
    "what is for clicking is not printed",
  );
  await tab.emulateMedia({ media: "screen" });
  await tab.evaluate(() => dispatchEvent(new Event("afterprint")));
});

await matrices({ look, drawn, folder });

await browser.close();
process.stdout.write(shown(folder));
console.log(`${passed} passed, 0 failed`);
