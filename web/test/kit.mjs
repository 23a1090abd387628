// What the tests in a browser share: the real server, a real Chromium, and a tab whose complaints fail the test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const binary = process.env.HIGHTIDE ?? here("../../bin/hightide");
/** A Python with torch; "" where there is none, and what needs it is left out and said to be. */
export const python = process.env.HIGHTIDE_TEST_PYTHON ?? "";
// What a test that fails leaves behind is ended and removed as well.
const running = new Set(), made = [];
process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM");
  for (const path of made) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
});
for (const [signal, status] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]]) process.once(signal, () => process.exit(status));

/** A new folder, which goes when the test ends. */
export function fresh(name) {
  made.push(mkdtempSync(join(tmpdir(), `hightide-${name}-`)));
  return made.at(-1);
}

/** As spawn; the program ends with the test. */
export function begin(command, args, options) {
  const child = spawn(command, args, options);
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

/** The folder for what a test saves and, where the first argument names it, for its screenshots; else a new one. */
export function screenshots(name) {
  const folder = process.argv[2] ?? fresh(name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Takes a screenshot of a page or a part of it where the test was given a folder, so that somebody looks: each takes tenths of a second of computing. */
export const shot = async (of, path, options = {}) => { if (process.argv[2]) await of.screenshot({ path, ...options }); };

/** Where the screenshots are, for the end of what a test prints. */
export const shown = (folder) => process.argv[2] ? `screenshots in ${folder}\n` : "";

/** A server, its address as it prints it, what it said, and its end. */
export async function serve(env, args = [], at = "127.0.0.1:0") {
  const child = begin(binary, ["ui", "--addr", at, ...args], { env, stdio: ["ignore", "ignore", "pipe"] }), told = { text: "" };
  const address = await new Promise((done, fail) => {
    child.stderr.on("data", (text) => { told.text += text; const found = /https?:\S+/.exec(told.text); if (found) done(found[0]); });
    child.on("exit", () => fail(new Error(`the server ended: ${told.text}`)));
  });
  const end = (signal = "SIGINT") => new Promise((done) => { if (child.exitCode !== null || child.signalCode) return done(); child.on("exit", done); child.kill(signal); });
  return { address: new URL(address), pid: child.pid, told, end };
}

// Without windows a browser starts far fewer processes: the headless shell takes less than half the processor of all else alike.
const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** A browser that waits ten minutes for a state before it is taken for missing: the machine may have much else to do. */
export async function launch() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? browsers.find((path) => existsSync(path)),
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  const context = browser.newContext.bind(browser);
  browser.newContext = async (options) => { const made = await context(options); made.setDefaultTimeout(600_000); return made; };
  return browser;
}

/** The address of a page of a server, with the token where it has one. */
export function addressOf(server, path) {
  const to = new URL(path, server.address), token = server.address.searchParams.get("token");
  if (token) to.searchParams.set("token", token);
  return to.href;
}

/**
 * Opens an address in a tab of its own. What the console says, errors that nothing caught and requests to elsewhere are complaints; `allowed` says of a
 * complaint that the test brought it about. Holes in the text and a page wider than the screen fail as well.
 */
export async function opened(browser, name, address, { scheme = "light", width = 1280, height = 900, allowed = () => false, downloads = false, before } = {}, check) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: downloads }), tab = await context.newPage(), complaints = [], home = new URL(address).host;
  const complain = (text) => { if (!allowed(text)) complaints.push(text); };
  tab.on("console", (m) => ["error", "warning"].includes(m.type()) && complain(m.text()));
  tab.on("pageerror", (e) => complain(e.message));
  tab.on("request", (r) => { const to = new URL(r.url()); if (to.host !== home && !["data:", "blob:"].includes(to.protocol)) complain(`asks for ${r.url()}`); });
  if (before) await tab.addInitScript(before);
  await tab.goto(address);
  await check(tab, context);
  await sound(tab, name);
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  await context.close();
}

/** Nothing is too wide, and no figure is a hole. */
export async function sound(tab, name) {
  const { wide, text, by } = await tab.evaluate(() => {
    const wide = document.documentElement.scrollWidth - innerWidth;
    const by = wide > 0 ? [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest(".scroll, .sideways, svg")).slice(0, 3).map((e) => `${e.tagName}.${e.className}`).join(" ") : "";
    return { wide, by, text: document.body.innerText };
  });
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide: ${by}`);
  const hole = /.{0,40}(undefined|\bNaN\b|Infinity|\[object).{0,20}/.exec(text);
  assert.equal(hole?.[0], undefined, `${name}: a hole`);
}

/** Runs in a page before its own scripts: keeps what moved by itself, as PerformanceObserver tells it, with what moved. */
export function watchShifts() {
  window.shifts = [];
  const name = (n) => { const e = n?.nodeType === 1 ? n : n?.parentElement; return e ? `${e.tagName.toLowerCase()}${e.id && `#${e.id}`}${[...e.classList].map((c) => `.${c}`).join("")}` : "something that is gone"; };
  const box = ({ left, top, width, height }) => [left, top, width, height].map(Math.round).join(" ");
  new PerformanceObserver((list) => {
    for (const { startTime, value, hadRecentInput, sources } of list.getEntries()) if (!hadRecentInput) window.shifts.push({ at: startTime, value, moved: (sources ?? []).map((s) => `${name(s.node)} from ${box(s.previousRect)} to ${box(s.currentRect)}`) });
  }).observe({ type: "layout-shift", buffered: true });
}

/**
 * The cumulative layout shift of a page that watchShifts watches, as web.dev defines it: the largest sum within 5 s in which no two lie more than 1 s
 * apart. With what moved most.
 */
export const layoutShift = (tab) => tab.evaluate(() => {
  let most = { score: 0, moved: [] }, from = 0;
  window.shifts.forEach((s, i, all) => {
    if (i > 0 && (s.at - all[i - 1].at > 1000 || s.at - all[from].at > 5000)) from = i;
    const these = all.slice(from, i + 1), score = these.reduce((sum, one) => sum + one.value, 0);
    if (score > most.score) most = { score, moved: these.toSorted((p, q) => q.value - p.value).slice(0, 3).map((one) => `${one.value.toFixed(4)}: ${one.moved.join("; ")}`) };
  });
  return most;
});

/** Waits until something has the focus. */
export const focused = (tab, selector) => tab.waitForFunction((selector) => document.activeElement?.matches(selector), selector);

const axeSource = readFileSync(here("../node_modules/axe-core/axe.min.js"), "utf8");

/** What axe-core finds wrong; the rules of WCAG as far as a program can tell. */
export async function violations(tab) {
  await tab.evaluate((source) => { if (!globalThis.axe) new Function(source)(); }, axeSource).catch(() => tab.evaluate(axeSource));
  let found = null;
  for (let tries = 1; !found; tries++) found = await tab.evaluate(() => globalThis.axe.run()).catch((e) => { if (tries === 5) throw e; }); // an element that a live page drew anew meanwhile
  assert.ok(found.passes.length > 5, "rules applied");
  return found.violations.map((v) => `${v.id} (${v.help}): ${v.nodes.slice(0, 4).map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`).join("; ")}`);
}
