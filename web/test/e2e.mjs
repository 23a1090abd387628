// Opens reports in a real Chromium, as a person would: light, dark, narrow, printed, and empty ones.
//   node test/e2e.mjs [folder for screenshots]
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const root = new URL("../..", import.meta.url).pathname;
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "hightide-e2e-"));
mkdirSync(folder, { recursive: true });
const page = readFileSync(join(root, "web/dist/report.html"), "utf8");
const real = JSON.parse(readFileSync(join(root, "testdata/runs/leak.report.json"), "utf8"));
const empty = { ...real, findings: [], tables: [], series: [], phases: [], steps: [], marks: [], notes: [], processes: [],
  headline: { verdict: "Nothing was seen.", duration_ns: 0, steps: 0, complete: false, peak: { label: "measured" } } };
const hostile = { ...real, run: { ...real.run, name: "</script><img src=x onerror=alert(1)>" },
  headline: { ...real.headline, verdict: "<b>bold</b> `<i>` " + "x".repeat(400) } };

function file(name, report) {
  const path = join(folder, `${name}.html`);
  const json = JSON.stringify(report).replaceAll("<", "\\u003c");
  writeFileSync(path, page.replace('id="hightide-report">null<', () => `id="hightide-report">${json}<`));
  return `file://${path}`;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
let passed = 0;

async function look(name, report, { width = 1280, scheme = "light", media = "screen" }, check) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const tab = await context.newPage();
  const complaints = [];
  tab.on("console", (m) => m.type() === "error" && complaints.push(m.text()));
  tab.on("pageerror", (e) => complaints.push(e.message));
  tab.on("dialog", (d) => { complaints.push("a dialog"); void d.dismiss(); });
  tab.on("request", (r) => r.url().startsWith("file:") || r.url().startsWith("data:") || complaints.push(`asks for ${r.url()}`));
  await tab.goto(file(name, report));
  await tab.emulateMedia({ media, colorScheme: scheme });
  await tab.waitForTimeout(400);
  await check(tab);
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
  await tab.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  await context.close();
  passed++;
}

/** Distinct colours on the first chart: a blank canvas has one. */
const colours = (tab) => tab.evaluate(() => {
  const canvas = document.querySelector("#timeline canvas");
  if (!canvas || !canvas.width) return 0;
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels).size;
});

async function whole(tab) {
  assert.equal(await tab.locator("h1").innerText(), real.headline.verdict.replaceAll("`", ""));
  const first = real.findings[0];
  assert.match(await tab.locator(".finding .where").first().innerText(), new RegExp(`${first.file.split("/").at(-1)}:${first.line}`));
  assert.ok(await colours(tab) > 5, "the timeline is drawn");
  assert.ok(await tab.locator("table tbody tr").count() >= real.tables.length, "the tables have rows");
}

await look("light", real, {}, async (tab) => {
  await whole(tab);
  const heading = tab.locator("#tables th.number button").first();
  await heading.click();
  assert.equal(await tab.locator("#tables th[aria-sort=descending]").count(), 1);
  await tab.keyboard.press("t");
  assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), "dark");
});
await look("dark", real, { scheme: "dark" }, async (tab) => {
  await whole(tab);
  assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), "dark");
});
await look("narrow", real, { width: 390 }, whole);
await look("print", real, { media: "print" }, whole);
await look("empty", empty, {}, async (tab) => {
  assert.equal(await tab.locator("h1").innerText(), "Nothing was seen.");
  assert.equal(await tab.locator("canvas").count(), 0);
});
await look("hostile", hostile, { width: 800 }, async (tab) => {
  assert.equal(await tab.locator("h1 b, h1 i, img").count(), 0, "texts stay texts");
});
await browser.close();
console.log(`screenshots in ${folder}`);
console.log(`${passed} passed, 0 failed`);
