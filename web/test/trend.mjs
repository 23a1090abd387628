// The page of trends, in a real Chromium on the real server: commits of a real repository, the one that changed the peak, its lines.
//   node test/trend.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addressOf,
  binary,
  fresh,
  launch,
  opened,
  opensAlone,
  savedFile,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const folder = screenshots("trend"),
  work = fresh("work"),
  who = {
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  },
  env = { ...process.env, ...who, HIGHTIDE_DATA: fresh("data") },
  does = (command, ...args) => execFileSync(command, args, { cwd: work, env, encoding: "utf8" }),
  python = does("python3", "-c", "import sys; print(sys.executable)").trim();

does("git", "init", "-q", ".");
for (const [commit, mebibytes] of [40, 40, 64, 64].entries()) {
  writeFileSync(
    join(work, "train.py"),
    `import time\nheld = bytearray(b"x") * (${mebibytes} << 20)\ntime.sleep(0.5)\n# ${commit}\n`,
  );
  does("git", "add", "train.py");
  does("git", "commit", "-qm", `${commit}`);
  for (let again = 0; again < 2; again++)
    does(binary, "run", "--quiet", "--tag", "project=ranker", "--", python, "train.py");
}
const told = JSON.parse(does(binary, "trend", "--json")),
  changed = told.commits.filter((c) => c.verdict === "changed");
assert.equal(told.commits.length, 4);

/** What a file has: the same commits, and commands in place of links. */
async function alone(tab) {
  await tab.locator("svg.trend").waitFor();
  assert.match(await tab.title(), /from commit to commit/);
  assert.equal(await tab.locator("#commits tbody tr").count(), 4);
  assert.equal(await tab.locator("svg.trend .is-changed").count(), changed.length);
  assert.equal(await tab.locator('main a[href^="/"], #app a[href^="/"]').count(), 0);
  assert.equal(
    await tab.locator("svg.trend .leads").count(),
    0,
    "nothing leads anywhere in a file",
  );
  const { before_run: a, first_run: b } = told.commits[2];
  assert.match(await tab.locator("#commits").innerText(), new RegExp(`hightide diff ${a} ${b}`));
  assert.match(await tab.locator("#app .hint").first().innerText(), /tagged project=ranker/);
}

const typed = join(work, "trend.html");
does(binary, "trend", "--tag", "project=ranker", "--html", typed);

const server = await serve(env),
  browser = await launch();
let passed = 0;
async function look(name, path, options, check) {
  await opened(browser, name, addressOf(server, path), options, async (tab) => {
    await check(tab);
    await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  });
  passed++;
}

await look("trend", "/trend?tag=project%3Dranker", { downloads: true }, async (tab) => {
  await tab.locator("svg.trend").waitFor();
  assert.equal(await tab.locator("#commits tbody tr").count(), 4);
  assert.equal(await tab.locator("svg.trend .is-changed").count(), changed.length);
  const third = told.commits[2];
  await tab.getByRole("button", { name: `Which lines ${third.commit.slice(0, 10)}` }).click();
  await tab.locator("#lines svg").first().waitFor();
  assert.equal(new URL(tab.url()).searchParams.get("at"), third.first_run);
  assert.match(await tab.locator("#lines").innerText(), /train\.py:2/);
  assert.deepEqual(await violations(tab), []);
  await savedFile(browser, tab, "saved", folder, alone);
});

await opensAlone(browser, typed, "typed", folder, alone);

await look("line", "/trend?tag=project%3Dranker", {}, async (tab) => {
  const figure = tab.getByLabel(/^Figure/);
  await tab.locator("svg.trend").waitFor();
  await figure.fill("train.py:2");
  await figure.press("Tab");
  await tab.getByText("the mean of what train.py:2 held").waitFor();
  const of = JSON.parse(does(binary, "trend", "--of", "train.py:2", "--json")),
    third = of.commits[2];
  assert.equal(third.change_bytes, 24 << 20, "what the line holds more, to the byte");
  assert.equal(third.verdict, "changed");
  assert.equal(await tab.locator("svg.trend .is-changed").count(), 1);
  await tab.getByRole("button", { name: `Which lines ${third.commit.slice(0, 10)}` }).click();
  await tab.locator("#lines svg").first().waitFor();
  const { searchParams } = new URL(tab.url());
  assert.deepEqual(
    [searchParams.get("of"), searchParams.get("at")],
    ["train.py:2", third.first_run],
  );
  assert.deepEqual(await violations(tab), []);
});

await look("narrow", "/trend", { width: 390, scheme: "dark" }, async (tab) => {
  await tab.locator("svg.trend .point").first().click();
  assert.equal(
    new URL(tab.url()).searchParams.get("at"),
    null,
    "nothing is before the first commit",
  );
  const hand = (n) =>
    tab
      .locator("svg.trend .point")
      .nth(n)
      .evaluate((p) => getComputedStyle(p).cursor === "pointer");
  assert.deepEqual([await hand(0), await hand(1)], [false, true], "a hand where a click leads");
  await tab.locator("svg.trend .point").nth(1).click();
  await tab.locator("#lines").waitFor();
  assert.deepEqual(await violations(tab), []);
});

await look("nothing", "/trend?search=nothing", {}, async (tab) => {
  await tab.locator(".empty").waitFor();
  assert.deepEqual(await violations(tab), []);
});

await server.end();
await browser.close();
console.log(`trend: ${passed} pages\n${shown(folder)}`);
