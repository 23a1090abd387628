// The list of runs and a run that is recorded just now, in a real Chromium on the real server.
//   node test/runs.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addressOf, begin, binary, fresh, launch, screenshots, serve, shot } from "./kit.mjs";

const folder = screenshots("runs"),
  data = fresh("data");
const env = { ...process.env, HIGHTIDE_DATA: data };
const ls = () =>
  JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.map(
    (r) => r.name,
  );
const server = await serve(env),
  address = addressOf(server, "/");
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }),
  tab = await context.newPage(),
  complaints = [];
tab.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
tab.on("pageerror", (e) => complaints.push(e.message));
let passed = 0;
const ok = (said) => {
  passed++;
  void said;
};
const narrow = async () => {
  assert.ok(
    (await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
    "the page is too wide",
  );
};

await tab.goto(address);
await tab.getByText("No runs yet").waitFor();
assert.match(await tab.locator(".empty").innerText(), /hightide run -- python train\.py/);
ok("an empty list says the first command");

const go = join(data, "go");
const program = `import time, os\nx = bytearray(90 << 20)\nwhile not os.path.exists(${JSON.stringify(go)}): time.sleep(0.05)`;
const live = begin(
  binary,
  ["run", "--quiet", "--name", "going", "--tag", "model=big", "--", "python3", "-c", program],
  { env, stdio: "ignore" },
);
const ended = new Promise((done) => live.on("exit", done));
await tab.locator("tr", { hasText: "going" }).locator(".outcome.live").waitFor();
ok("a run that begins comes into the list by itself");

const reading = () =>
  tab.locator("tr", { hasText: "going" }).locator(".run-spark").getAttribute("aria-label");
await tab
  .locator("tr", { hasText: "going" })
  .locator(".run-spark .curve[d^=M]")
  .waitFor({ state: "attached" });
assert.match(await reading(), /at most [\d.]+ [KM]iB, (measured|estimated), so far/);
const path = () =>
    tab.locator("tr", { hasText: "going" }).locator(".run-spark .curve").getAttribute("d"),
  early = await path();
while ((await path()) === early) await new Promise((done) => setTimeout(done, 50));
ok("a row has its small curve, which grows while the run is recorded");
await tab.getByRole("link", { name: "going" }).focus();
await tab.keyboard.press("r");
await tab.locator(".toast.bad", { hasText: "still recorded" }).waitFor();
assert.equal(await tab.locator("input.editing").count(), 0);
ok("a live run is not renamed, and the page says why");

await tab.getByRole("link", { name: "going" }).click();
await tab.locator(".live-state", { hasText: "recorded just now" }).waitFor();
await tab.locator("h1").first().waitFor();
assert.match(tab.url(), /\/runs\/\w+$/);
writeFileSync(go, "");
await ended;
await tab.locator(".live-state", { hasText: "has ended" }).waitFor();
await tab.locator(".top .outcome", { hasText: "done" }).waitFor();
ok("a run that is recorded is shown as it stands, and its end comes by itself");
await shot(tab, join(folder, "run.png"));

for (const name of ["first", "second"])
  execFileSync(
    binary,
    ["run", "--quiet", "--name", name, "--", "python3", "-c", "x = bytearray(40 << 20)"],
    { env },
  );
await tab.goBack();
await tab.locator("tbody tr").nth(2).waitFor();
await tab.getByRole("searchbox").fill("model=big");
assert.equal(await tab.locator("tbody tr").count(), 1);
assert.match(tab.url(), /q=model/);
await tab.getByRole("searchbox").fill("");
assert.equal(await tab.locator("tbody tr").count(), 3);
ok("search finds tags and stands in the address");

const holds = join(data, "holds.py");
writeFileSync(holds, "first = bytearray(1)\nkept = bytearray(30 << 20)\n");
execFileSync(binary, ["run", "--quiet", "--name", "holder", "--", "python3", holds], { env });
await tab.locator("tbody tr").nth(3).waitFor();
const found = async (search, rows) => {
  await tab.getByRole("searchbox").fill(search);
  await tab.waitForFunction(
    (n) =>
      document.querySelectorAll("tbody tr").length === n &&
      !/looking/.test(document.querySelector("#runs [role=status]").textContent),
    rows,
  );
};
await found("line:holds.py:2", 1);
assert.match(await tab.locator("tbody tr").innerText(), /holder/);
await found("line:holds.py:1", 0);
await found("line:holds.py", 1);
await found("finding:leak line:holds.py", 0);
execFileSync(binary, ["rm", "holder"], { env });
await found("", 3);
ok("search finds a line that held memory, by the server");

await tab.getByRole("button", { name: "Peak" }).click();
await tab.locator("th[aria-sort=descending]", { hasText: "Peak" }).waitFor();
await tab.locator("tbody tr").nth(2).waitFor();
assert.match(await tab.locator("tbody tr").first().innerText(), /going/);
ok("the list is ordered by a figure");

// rename and tags, by the keyboard, taken back by the message
const names = () => tab.locator("tr.run a.name").allInnerTexts(),
  of = (name) =>
    JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.find(
      (r) => r.name === name,
    );
await tab.getByRole("link", { name: "first" }).focus();
await tab.keyboard.press("F2");
await tab.getByLabel("Name of first").fill("renamed");
await tab.keyboard.press("Enter");
await tab.locator(".toast", { hasText: "Renamed to renamed" }).waitFor();
assert.ok((await names()).includes("renamed") && of("renamed"));
assert.equal(
  await tab.evaluate(() => document.activeElement.textContent),
  "renamed",
  "the focus stays at the run",
);
await tab.keyboard.press("z");
await tab.getByRole("link", { name: "first" }).waitFor();
assert.ok(of("first") && !of("renamed"));
await tab.getByRole("link", { name: "first" }).focus();
await tab.keyboard.press("r");
await tab.getByLabel("Name of first").fill("never");
await tab.keyboard.press("Escape");
assert.ok(!(await names()).includes("never") && !of("never"));
ok("a run is renamed where it stands, and back");
await tab.getByRole("link", { name: "first" }).focus();
await tab.keyboard.press("Shift+T");
await tab.getByLabel("Tags of first").fill("model=bert team=nlp");
await tab.keyboard.press("Enter");
await tab.locator("tr", { hasText: "first" }).getByRole("button", { name: "team=nlp" }).waitFor();
assert.deepEqual(of("first").tags, { model: "bert", team: "nlp" });
await tab.keyboard.press("z");
await tab.waitForFunction(() => !document.querySelector(".filter.tag[data-of='tag:team=nlp']"));
assert.deepEqual(of("first").tags ?? {}, {});
ok("tags are changed, and back");
await tab.getByLabel("Select first").check();
await tab.getByLabel("Select second").check();
await tab.keyboard.press("Shift+T");
await tab.getByLabel("Tags for 2 runs").fill("model=bert");
await tab.keyboard.press("Enter");
await tab.locator(".toast", { hasText: "Tags of 2 runs changed" }).waitFor();
assert.ok(of("first").tags.model === "bert" && of("second").tags.model === "bert");
ok("several runs are tagged at once");

// a row is as tall as each other, however many tags it has, and names are whole; a telephone has all pages
for (const [width, row] of [
  [400, 88],
  [1280, 58],
]) {
  await tab.setViewportSize({ width, height: 900 });
  const rows = await tab.locator("tr.run").evaluateAll((all) =>
    all.map((r) => {
      const name = r.querySelector("a.name");
      return {
        tall: r.offsetHeight,
        cut: name.scrollWidth > name.clientWidth + 1,
        badge: getComputedStyle(r.querySelector(".outcome")).fontSize,
      };
    }),
  );
  assert.ok(
    rows.length >= 3 &&
      rows.every((r) => Math.abs(r.tall - row) <= 1 && !r.cut && r.badge === rows[0].badge),
    `${width}: ${JSON.stringify(rows)}`,
  );
  const pages = await tab.locator(".bar nav a").evaluateAll((all) =>
    all.map((a) => {
      const { left, right, width } = a.getBoundingClientRect();
      return width > 0 && left >= 0 && right <= innerWidth;
    }),
  );
  assert.ok(
    pages.length === 10 && pages.every(Boolean),
    `${width}: links to pages in view: ${pages}`,
  );
}
ok(
  "rows are of one height, with whole names, and all pages are in the bar, at 1280 and 400 pixels",
);

// filters
const chip = (text) => tab.locator(".filter", { hasText: text });
assert.match(await chip("model=bert").innerText(), /model=bert\s+2/);
await chip("model=bert").click();
assert.equal(await tab.locator("tr.run").count(), 2);
assert.equal(await tab.getByRole("searchbox").inputValue(), "tag:model=bert");
assert.match(tab.url(), /q=tag%3Amodel%3Dbert/);
await tab.reload();
await tab.locator("tr.run").nth(1).waitFor();
assert.equal(await tab.locator("tr.run").count(), 2, "the address keeps the filter");
await chip("model=bert").click();
await tab.locator("tr.run").nth(2).waitFor();
await tab.locator("tr", { hasText: "going" }).getByRole("button", { name: "model=big" }).click();
assert.deepEqual(await names(), ["going"]);
await tab.getByRole("searchbox").fill("state:failed");
await tab.getByText("No run matches").waitFor();
await tab.getByRole("searchbox").fill("");
ok("filters are chips with counts, and parts of the search");

// columns
await tab.getByText("Columns", { exact: true }).click();
await tab.getByRole("checkbox", { name: "model (tag)" }).check();
await tab.getByLabel("Steps", { exact: true }).uncheck();
for (let i = 0; i < 6; i++)
  await tab.getByRole("button", { name: "Move model (tag) to the left" }).click();
await tab.keyboard.press("Escape");
assert.match(tab.url(), /columns=tag\.model%2Cended/);
assert.match(
  (await tab.locator("table.runs thead").innerText()).replace(/\s+/g, " "),
  /Name model State Curve Peak Findings Duration Started/,
);
await tab.reload();
await tab.locator("tr.run").nth(2).waitFor();
await tab.locator("th", { hasText: "model" }).getByRole("button").click();
await tab.locator("th[aria-sort=ascending]", { hasText: "model" }).waitFor();
assert.equal((await names()).at(-1), "going");
ok("columns are chosen and ordered, tags too, and stand in the address");
await tab.goto(address);
await tab.locator("tr.run").nth(2).waitFor();

await tab.getByLabel("Select first").check();
await tab.getByLabel("Select second").check();
await tab.locator("tr.run .run-spark").nth(2).waitFor();
await shot(tab, join(folder, "runs.png"));
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
await tab.keyboard.press("c");
await tab.waitForURL(/\/diff\?a=\w+&b=\w+/);
ok("two selected runs are compared");

await tab.setViewportSize({ width: 400, height: 800 });
await tab.goto(address);
await tab.locator("tbody tr").nth(1).waitFor();
await narrow();
await shot(tab, join(folder, "runs-400.png"));
ok("the list fits 400 pixels");

// a few hundred runs: rows that are not in view are not there
await tab.setViewportSize({ width: 1280, height: 900 });
const runs = join(data, "runs"),
  [one] = readdirSync(runs);
for (let i = 0; i < 250; i++)
  cpSync(join(runs, one), join(runs, `copy${String(i).padStart(4, "0")}`), { recursive: true });
await tab.goto(address);
await tab.getByText(/252 runs/).waitFor({ timeout: 120_000 });
assert.ok((await tab.locator("tr.run").count()) < 60);
await tab.locator("tr.run .run-spark").nth(5).waitFor();
await tab.keyboard.press("j");
for (let i = 0; i < 40; i++) await tab.keyboard.press("j");
assert.equal(
  await tab.evaluate(() => document.activeElement.closest("tr").getAttribute("aria-rowindex")),
  "42",
  "keys go on beyond what is in view",
);
await tab.locator(".rows").evaluate((e) => {
  e.scrollTop = e.scrollHeight;
});
await tab.locator("tr.run[aria-rowindex='253']").waitFor();
assert.ok((await tab.locator("tr.run").count()) < 60);
await shot(tab, join(folder, "runs-250.png"));

// conditions on figures, and one that cannot be read
await tab.getByRole("searchbox").fill("peak>1TiB");
await tab.getByText("No run matches").waitFor();
await tab.getByRole("searchbox").fill("peak>1KiB peek>1GiB");
await tab
  .getByRole("status")
  .filter({ hasText: "“peek>1GiB” is no condition: they are as peak>1GiB" })
  .waitFor();
assert.match(
  await tab.getByRole("status").filter({ hasText: "condition" }).innerText(),
  /^252 runs/,
);
await tab.getByRole("searchbox").fill("");
ok("conditions filter, and one that cannot be read is said to be none");

// where a reader stood: after going back, and after a reload
const place = tab.locator("tr.run[aria-rowindex='90']"),
  stood = () => tab.locator(".rows").evaluate((e) => e.scrollTop);
await tab.locator(".rows").evaluate((e) => {
  e.scrollTop = 5000;
});
await place.waitFor();
const at = await stood();
await place.locator("a.name").evaluate((e) => e.click()); // without scrolling it into view
await tab.locator(".top .outcome").waitFor();
await tab.goBack();
await tab.waitForFunction((top) => document.querySelector(".rows")?.scrollTop === top, at);
await place.waitFor();
await tab.reload();
await tab.waitForFunction((top) => document.querySelector(".rows")?.scrollTop === top, at);
await place.waitFor();
ok("back and a reload show the list where it was");

// a run that is deleted while its page is open
await tab.goto(new URL("/runs/copy0007", address).href);
await tab.locator(".top .outcome", { hasText: "done" }).waitFor();
execFileSync(binary, ["rm", "copy0007"], { env });
await tab.locator(".live-state", { hasText: "The run was deleted" }).waitFor();
ok("a run that is deleted while its page is open is said to be");

// the trials of a matrix are one row, which leads to them
for (const n of ["0008", "0009"])
  execFileSync(binary, ["tag", `copy${n}`, "matrix=speed", `cell=${n}`, "repeat=1"], { env });
await tab.goto(address);
await tab.getByRole("searchbox").fill("speed");
await tab
  .locator("tr.run", { hasText: "2 trials of a matrix" })
  .getByRole("link", { name: "speed" })
  .click();
await tab.waitForFunction(() => document.querySelectorAll("tr.run").length === 2);
assert.equal(await tab.getByRole("searchbox").inputValue(), "tag:matrix=speed");
ok("the trials of a matrix are one row");
await tab.getByRole("searchbox").fill("");
await tab.emulateMedia({ colorScheme: "dark" });
await shot(tab, join(folder, "runs-250-dark.png"));
ok("hundreds of runs are as many rows as are in view");
assert.deepEqual(complaints, [], "the page complains");
await browser.close();
await server.end();
console.log(`${passed} passed, 0 failed`);
