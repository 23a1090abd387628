// The frame of the live web UI in a real Chromium on the real server: palette, keys, explanations, and where the focus is.
//   node test/frame.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const binary = process.env.HIGHTIDE ?? here("../../bin/hightide");
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "hightide-frame-")), env = { ...process.env, HIGHTIDE_DATA: mkdtempSync(join(tmpdir(), "hightide-data-")) };
mkdirSync(folder, { recursive: true });
execFileSync(binary, ["run", "--quiet", "--name", "tall tide", "--", "python3", "-c", "x = bytearray(60 << 20)\nimport time; time.sleep(0.7)"], { env });

/** A server at an address, as it prints it, and its end. */
async function serve(at) {
  const child = spawn(binary, ["ui", "--addr", at], { env, stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((done, fail) => {
    let said = "";
    child.stderr.on("data", (text) => { said += text; const found = /http:\S+/.exec(said); if (found) done(found[0]); });
    child.on("exit", () => fail(new Error(`the server ended: ${said}`)));
  });
  return { address: new URL(address), end: () => new Promise((done) => { child.on("exit", done); child.kill("SIGINT"); }) };
}

let server = await serve("127.0.0.1:0"), passed = 0;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

/** Opens a page; away: the server goes, and the browser says so. */
async function look(name, path, { scheme = "light", width = 1280, away = false }, check) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme }), tab = await context.newPage(), complaints = [];
  tab.on("console", (m) => ["error", "warning"].includes(m.type()) && !(away && m.text().includes("ERR_CONNECTION_REFUSED")) && complaints.push(m.text()));
  tab.on("pageerror", (e) => complaints.push(e.message));
  await tab.goto(new URL(path, server.address).href);
  await tab.locator("#app > *").first().waitFor();
  await check(tab);
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: nothing is too wide`);
  await context.close();
  passed++;
}
const shot = (tab, name) => tab.screenshot({ path: join(folder, `${name}.png`) });
const focused = (tab, selector) => tab.waitForFunction((selector) => document.activeElement?.matches(selector), selector);

for (const scheme of ["light", "dark"]) await look(`palette-${scheme}`, "/", { scheme }, async (tab) => {
  await tab.locator(".bar .find").focus();
  await tab.keyboard.press("Control+k");
  await focused(tab, ".palette input");
  await tab.locator(".palette li", { hasText: "tall tide" }).waitFor(); // runs come from the server
  await shot(tab, `palette-${scheme}`);
  await tab.keyboard.press("Escape");
  await tab.locator(".palette").waitFor({ state: "detached" });
  await focused(tab, ".bar .find");
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("jbs");
  await tab.locator(".palette li[aria-selected=true]", { hasText: "Jobs" }).waitFor();
  await tab.keyboard.press("Enter");
  await tab.waitForURL("**/jobs");
  await tab.locator("h1", { hasText: "Jobs" }).waitFor();
  await focused(tab, "main"); // who uses the keyboard begins at the new page
  assert.equal(await tab.locator(".bar [aria-current=page]").innerText(), "Jobs");
});

await look("run", "/jobs", { width: 400 }, async (tab) => {
  await tab.locator(".bar .find").click();
  await tab.keyboard.type("tall");
  await tab.locator(".palette li[aria-selected=true]", { hasText: "tall tide" }).click();
  await tab.waitForURL("**/runs/*");
  await tab.locator("#timeline").waitFor();
});

await look("keys", "/", {}, async (tab) => {
  await tab.locator(".bar .ask").focus();
  await tab.keyboard.press("?");
  const sheet = tab.getByRole("dialog", { name: "Keys" });
  await sheet.waitFor();
  assert.match(await sheet.innerText(), /Ctrl\+K[\s\S]*find a page/);
  await shot(tab, "keys");
  await tab.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await focused(tab, ".bar .ask");
  await tab.keyboard.press("t");
  assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), "dark");
});

await look("learn", "/", { scheme: "dark" }, async (tab) => {
  await tab.locator("#app a[href^='/runs/']").first().click();
  await tab.locator("#timeline").hover();
  await tab.keyboard.press("i");
  const lesson = tab.locator("#timeline .lesson");
  await focused(tab, ".lesson");
  assert.match(await lesson.innerText(), /Memory over time[\s\S]*Good[\s\S]*Bad[\s\S]*Resident set size/);
  await shot(tab, "learn");
  await tab.keyboard.press("Escape");
  await lesson.waitFor({ state: "detached" });
  await focused(tab, "#timeline .learn");
});

await look("message", "/imagine", {}, async (tab) => {
  await tab.context().grantPermissions(["clipboard-write"]);
  await tab.getByLabel("Command").fill("a");
  await tab.keyboard.type("gi?"); // in a field these are letters
  assert.equal(await tab.getByLabel("Command").inputValue(), "agi?");
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type("copy address");
  await tab.keyboard.press("Enter");
  await tab.locator(".toast", { hasText: "is copied" }).waitFor();
  await shot(tab, "message");
  await tab.getByRole("button", { name: "Close this message" }).click();
  assert.equal(await tab.locator(".toast").count(), 0);
});

// the rules of WCAG, as far as a program can tell
const axe = readFileSync(here("../node_modules/axe-core/axe.min.js"), "utf8");
for (const path of ["/", "/imagine", "/fit", "/jobs"]) for (const scheme of ["light", "dark"]) await look(`axe ${path} ${scheme}`, path, { scheme }, async (tab) => {
  await tab.waitForLoadState("networkidle");
  await tab.evaluate(axe);
  for (const state of ["the page", "the palette"]) {
    if (state === "the palette") { await tab.keyboard.press("Control+k"); await focused(tab, ".palette input"); }
    const found = await tab.evaluate(() => globalThis.axe.run());
    assert.ok(found.passes.length > 10, "rules applied");
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`), [], `${path}, ${scheme}, ${state}`);
  }
});

await look("away", "/jobs", { away: true }, async (tab) => {
  const { host } = server.address;
  await server.end();
  await tab.keyboard.press("Control+k"); // asks for the runs; closing the palette gives that up
  await tab.locator(".away", { hasText: "The server went away" }).waitFor();
  await tab.keyboard.press("Escape");
  server = await serve(host);
  await tab.locator(".away").waitFor({ state: "hidden" });
});

await server.end();
await browser.close();
console.log(`screenshots in ${folder}\n${passed} passed, 0 failed`);
