// The list of runs and a run that is recorded just now, in a real Chromium on the real server.
//   node test/runs.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const binary = process.env.HIGHTIDE ?? fileURLToPath(new URL("../../bin/hightide", import.meta.url));
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "hightide-runs-")), data = mkdtempSync(join(tmpdir(), "hightide-data-"));
mkdirSync(folder, { recursive: true });
const env = { ...process.env, HIGHTIDE_DATA: data };
const ls = () => JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.map((r) => r.name);
const server = spawn(binary, ["ui", "--addr", "127.0.0.1:0"], { env, stdio: ["ignore", "ignore", "pipe"] });
const address = await new Promise((done, fail) => {
  let said = "";
  server.stderr.on("data", (text) => { said += text; const found = /http:\S+/.exec(said); if (found) done(found[0]); });
  server.on("exit", () => fail(new Error(`the server ended: ${said}`)));
});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }), tab = await context.newPage(), complaints = [];
tab.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
tab.on("pageerror", (e) => complaints.push(e.message));
let passed = 0;
const ok = (said) => { passed++; void said; };
const narrow = async () => { assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth) <= 0, "the page is too wide"); };

await tab.goto(address);
await tab.getByText("No runs yet").waitFor();
assert.match(await tab.locator(".empty").innerText(), /hightide run -- python train\.py/);
ok("an empty list says the first command");

const go = join(data, "go");
const program = `import time, os\nx = bytearray(90 << 20)\nwhile not os.path.exists(${JSON.stringify(go)}): time.sleep(0.05)`;
const live = spawn(binary, ["run", "--quiet", "--name", "going", "--tag", "model=big", "--", "python3", "-c", program], { env, stdio: "ignore" });
const ended = new Promise((done) => live.on("exit", done));
await tab.locator("tr", { hasText: "going" }).locator(".outcome.live").waitFor();
ok("a run that begins comes into the list by itself");

await tab.getByRole("link", { name: "going" }).click();
await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
await tab.locator("h1").first().waitFor();
assert.match(tab.url(), /\/runs\/\w+$/);
writeFileSync(go, "");
await ended;
await tab.locator(".live-state", { hasText: "has ended" }).waitFor();
await tab.locator(".top .outcome", { hasText: "exit 0" }).waitFor();
ok("a run that is recorded is shown as it stands, and its end comes by itself");
await tab.screenshot({ path: join(folder, "run.png") });

for (const name of ["first", "second"]) execFileSync(binary, ["run", "--quiet", "--name", name, "--", "python3", "-c", "x = bytearray(40 << 20)"], { env });
await tab.goBack();
await tab.locator("tbody tr").nth(2).waitFor();
await tab.getByRole("searchbox").fill("model=big");
assert.equal(await tab.locator("tbody tr").count(), 1);
assert.match(tab.url(), /q=model/);
await tab.getByRole("searchbox").fill("");
assert.equal(await tab.locator("tbody tr").count(), 3);
ok("search finds tags and stands in the address");

await tab.getByRole("button", { name: "Peak" }).click();
await tab.locator("th[aria-sort=descending]", { hasText: "Peak" }).waitFor();
await tab.locator("tbody tr").nth(2).waitFor();
assert.match(await tab.locator("tbody tr").first().innerText(), /going/);
ok("the list is ordered by a figure");

await tab.getByLabel("Select first").check();
await tab.getByLabel("Select second").check();
await tab.screenshot({ path: join(folder, "runs.png") });
await tab.getByRole("button", { name: "Delete" }).click();
assert.equal(await tab.locator("tbody tr").count(), 1);
await tab.getByRole("button", { name: "Undo" }).click();
assert.equal(await tab.locator("tbody tr").count(), 3);
assert.equal(ls().length, 3);
ok("a deletion is undone");
await tab.getByLabel("Select second").check();
await tab.getByRole("button", { name: "Delete" }).click();
await tab.getByRole("button", { name: "Close this message" }).click();
while (ls().includes("second")) await new Promise((done) => setTimeout(done, 50));
ok("a deletion is sent when its message is gone");

await tab.getByLabel("Select first").check();
await tab.getByLabel("Select going").check();
await tab.getByRole("button", { name: "Compare" }).click();
await tab.waitForURL(/\/diff\?a=\w+&b=\w+/);
ok("two selected runs are compared");

await tab.setViewportSize({ width: 400, height: 800 });
await tab.goto(address);
await tab.locator("tbody tr").nth(1).waitFor();
await narrow();
await tab.screenshot({ path: join(folder, "runs-400.png") });
ok("the list fits 400 pixels");
assert.deepEqual(complaints, [], "the page complains");
await browser.close();
server.kill("SIGINT");
console.log(`${passed} passed`);
