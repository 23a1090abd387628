// What the tests in a browser share: the real server, a real Chromium, and a tab whose complaints fail the test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const binary = process.env.HIGHTIDE ?? here("../../bin/hightide");
/** A Python with torch; "" where there is none, and what needs it is left out and said to be. */
export const python = process.env.HIGHTIDE_TEST_PYTHON ?? "";
// What a test that fails leaves behind is ended and removed as well.
const running = new Set(),
  made = [];
process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM");
  for (const path of made) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
});
for (const [signal, status] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
])
  process.once(signal, () => process.exit(status));

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
export const shot = async (of, path, options = {}) => {
  if (process.argv[2]) await of.screenshot({ path, ...options });
};

/** Where the screenshots are, for the end of what a test prints. */
export const shown = (folder) => (process.argv[2] ? `screenshots in ${folder}\n` : "");

/** The servers by their host and port, and the contexts of browsers: each of these is let in to all of those. */
const servers = new Map(),
  contexts = new Set();

/** What a program that has the token asks. */
export const ask = (server, path, { headers, ...more } = {}) =>
  fetch(new URL(path, server.address), {
    ...more,
    headers: { Authorization: `Bearer ${server.token}`, ...headers },
  });
export const askJSON = async (server, path) => (await ask(server, `/api/v1${path}`)).json();

/** The token that a server left in its data directory. */
export const tokenOf = (data, address) =>
  JSON.parse(readFileSync(join(data, "ui", `server-${new URL(address).port}.json`), "utf8")).token;

/** Begins a session, as the page does: its cookie and its secret. */
export async function session(server) {
  const { code } = await (await ask(server, "/api/v1/session/codes", { method: "POST" })).json();
  const answer = await fetch(new URL("/api/v1/session", server.address), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  const [name, value] = answer.headers.get("set-cookie").split(";")[0].split("=");
  return { name, value, page: (await answer.json()).page };
}

/** Lets a context in to a server, as the address does that the server prints. */
export async function letIn(context, server) {
  const { name, value, page } = await session(server),
    { origin } = server.address;
  await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: "Strict" }]);
  await context.addInitScript(
    ([origin, page]) => {
      if (location.origin === origin && !localStorage.getItem("hightide-page"))
        localStorage.setItem("hightide-page", page);
    },
    [origin, page],
  );
}

/** Opens the address that a server printed in another tab, as its reader does once the server was started again. */
export async function openAgain(tab, server) {
  const other = await tab.context().newPage();
  await other.goto(server.address.href);
  await other.locator(".bar").waitFor();
  await other.close();
}

/** A server, its address as it prints it, its token, what it said, and its end. */
export async function serve(env, args = [], at = "127.0.0.1:0") {
  const child = begin(binary, ["ui", "--addr", at, ...args], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    }),
    told = { text: "" };
  const address = await new Promise((done, fail) => {
    child.stderr.on("data", (text) => {
      told.text += text;
      const found = /https?:\S+/.exec(told.text);
      if (found) done(found[0]);
    });
    child.on("exit", () => fail(new Error(`the server ended: ${told.text}`)));
  });
  const to = new URL(address),
    token = tokenOf(env.HIGHTIDE_DATA, to);
  const end = (signal = "SIGINT") =>
    new Promise((done) => {
      if (child.exitCode !== null || child.signalCode) return done();
      child.on("exit", done);
      child.kill(signal);
    });
  const server = { address: to, token, pid: child.pid, told, end };
  servers.set(to.host, server);
  for (const context of contexts) await letIn(context, server);
  child.on("exit", () => {
    if (servers.get(to.host) === server) servers.delete(to.host);
  });
  return server;
}

/** Has browsers be let in to a server that a test started itself. */
export async function admit(server) {
  servers.set(server.address.host, server);
  for (const context of contexts) await letIn(context, server);
}

// Without windows a browser starts far fewer processes: the headless shell takes less than half the processor of all else alike.
const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** A browser that waits ten minutes for a state before it is taken for missing: the machine may have much else to do. */
export async function launch() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? browsers.find((path) => existsSync(path)),
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const context = browser.newContext.bind(browser);
  browser.newContext = async ({ stranger, ...options } = {}) => {
    const made = await context(options);
    made.setDefaultTimeout(Number(process.env.HIGHTIDE_TEST_TIMEOUT_MS) || 600_000);
    if (!stranger) {
      contexts.add(made);
      made.on("close", () => contexts.delete(made));
      for (const server of servers.values()) await letIn(made, server);
    }
    return made;
  };
  return browser;
}

/** The address of a page of a server. */
export const addressOf = (server, path) => new URL(path, server.address).href;

/**
 * Opens an address in a tab of its own. What the console says, errors that nothing caught and requests to elsewhere are complaints; `allowed` says of a
 * complaint that the test brought it about. Holes in the text and a page wider than the screen fail as well.
 */
export async function opened(
  browser,
  name,
  address,
  {
    scheme = "light",
    width = 1280,
    height = 900,
    allowed = () => false,
    downloads = false,
    before,
  } = {},
  check,
) {
  const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      acceptDownloads: downloads,
    }),
    tab = await context.newPage(),
    complaints = [],
    home = new URL(address).host;
  const complain = (text) => {
    if (!allowed(text)) complaints.push(text);
  };
  tab.on("console", (m) => ["error", "warning"].includes(m.type()) && complain(m.text()));
  tab.on("pageerror", (e) => complain(e.message));
  tab.on("request", (r) => {
    const to = new URL(r.url());
    if (to.host !== home && !["data:", "blob:"].includes(to.protocol))
      complain(`asks for ${r.url()}`);
  });
  if (before) await tab.addInitScript(before);
  await tab.goto(address);
  await check(tab, context);
  await sound(tab, name);
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  await context.close();
}

/**
 * Saves the page that is shown as one file, and opens that in browsers without a network: light, dark and narrow. The
 * check is of the first. Where nothing is saved in the way that is named, there is one way.
 */
export async function savedFile(browser, tab, name, folder, check, how = "Save as one HTML file") {
  await tab.locator("button.toggle.share").click();
  const coming = tab.waitForEvent("download");
  coming.catch(() => {}); // what goes wrong before is said
  const ways = tab.locator(".share-ways"),
    named = ways.getByRole("button", { name: how });
  await ((await named.count()) ? named : ways.getByRole("button", { name: /^Save/ })).click();
  const file = join(folder, `${name}.html`);
  await (await coming).saveAs(file);
  await opensAlone(browser, file, name, folder, check);
}

/** Opens a page that is one file in browsers without a network: light, dark and narrow. */
export async function opensAlone(browser, file, name, folder, check) {
  for (const [how, options] of [
    ["light", {}],
    ["narrow", { width: 400, scheme: "dark" }],
  ])
    await opened(browser, `${name} alone`, pathToFileURL(file).href, options, async (alone) => {
      await alone.context().setOffline(true);
      await alone.reload();
      await check(alone);
      assert.deepEqual(await violations(alone), []);
      await shot(alone, join(folder, `${name}-alone-${how}.png`), { fullPage: true });
    });
}

/** Nothing is too wide, and no figure is a hole. */
export async function sound(tab, name) {
  const { wide, text, by } = await tab.evaluate(() => {
    const wide = document.documentElement.scrollWidth - innerWidth;
    const by =
      wide > 0
        ? [...document.querySelectorAll("body *")]
            .filter(
              (e) =>
                e.getBoundingClientRect().right > innerWidth + 0.5 &&
                !e.closest(".scroll, .sideways, svg"),
            )
            .slice(0, 3)
            .map((e) => `${e.tagName}.${e.className}`)
            .join(" ")
        : "";
    return { wide, by, text: document.body.innerText };
  });
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide: ${by}`);
  const hole = /.{0,40}(undefined|\bNaN\b|Infinity|\[object).{0,20}/.exec(text);
  assert.equal(hole?.[0], undefined, `${name}: a hole`);
}

/** Runs in a page before its own scripts: keeps what moved by itself, as PerformanceObserver tells it, with what moved. */
export function watchShifts() {
  window.shifts = [];
  const name = (n) => {
    const e = n?.nodeType === 1 ? n : n?.parentElement;
    return e
      ? `${e.tagName.toLowerCase()}${e.id && `#${e.id}`}${[...e.classList].map((c) => `.${c}`).join("")}`
      : "something that is gone";
  };
  const box = ({ left, top, width, height }) =>
    [left, top, width, height].map(Math.round).join(" ");
  new PerformanceObserver((list) => {
    for (const { startTime, value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput)
        window.shifts.push({
          at: startTime,
          value,
          moved: (sources ?? []).map(
            (s) => `${name(s.node)} from ${box(s.previousRect)} to ${box(s.currentRect)}`,
          ),
        });
  }).observe({ type: "layout-shift", buffered: true });
}

/**
 * The cumulative layout shift of a page that watchShifts watches, as web.dev defines it: the largest sum within 5 s in which no two lie more than 1 s
 * apart. With what moved most.
 */
export const layoutShift = (tab) =>
  tab.evaluate(() => {
    let most = { score: 0, moved: [] },
      from = 0;
    window.shifts.forEach((s, i, all) => {
      if (i > 0 && (s.at - all[i - 1].at > 1000 || s.at - all[from].at > 5000)) from = i;
      const these = all.slice(from, i + 1),
        score = these.reduce((sum, one) => sum + one.value, 0);
      if (score > most.score)
        most = {
          score,
          moved: these
            .toSorted((p, q) => q.value - p.value)
            .slice(0, 3)
            .map((one) => `${one.value.toFixed(4)}: ${one.moved.join("; ")}`),
        };
    });
    return most;
  });

/** Waits until something has the focus. */
export const focused = (tab, selector) =>
  tab.waitForFunction((selector) => document.activeElement?.matches(selector), selector);

const axeSource = readFileSync(here("../node_modules/axe-core/axe.min.js"), "utf8");

/** What axe-core finds wrong; the rules of WCAG as far as a program can tell. */
export async function violations(tab) {
  await tab
    .evaluate((source) => {
      if (!globalThis.axe) new Function(source)();
    }, axeSource)
    .catch(() => tab.evaluate(axeSource));
  let found = null;
  for (let tries = 1; !found; tries++)
    found = await tab
      .evaluate(() => globalThis.axe.run())
      .catch((e) => {
        if (tries === 5) throw e;
      }); // an element that a live page drew anew meanwhile
  assert.ok(found.passes.length > 5, "rules applied");
  return found.violations.map(
    (v) =>
      `${v.id} (${v.help}): ${v.nodes
        .slice(0, 4)
        .map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`)
        .join("; ")}`,
  );
}
