// From a pull request to the line, in a real Chromium on a real server of a team: a comment is made of the server's runs, and
// a colleague opens its links, signs in, and reads what changed and how the commit's check ended.
//   node test/pullrequest.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, fresh, launch, screenshots, shot, shown, violations } from "./kit.mjs";
import { team } from "./team.mjs";

const folder = screenshots("pullrequest"),
  server = await team(
    `[projects.ranker]\nmembers = ["anna"]\nviewers = ["dora"]\n`,
    "anna",
    "push",
  ),
  password = "a long password",
  work = fresh("work"),
  who = ["-c", "user.name=a", "-c", "user.email=a@b"],
  env = {
    ...server.env,
    HIGHTIDE_DATA: fresh("anna"),
    HIGHTIDE_STORE: "",
    HIGHTIDE_OBJECTS: "",
    HIGHTIDE_SERVER: server.address.origin,
    HIGHTIDE_PROJECT: "ranker",
    HIGHTIDE_KEY: server.token,
  },
  does = (command, ...args) =>
    execFileSync(command, args, {
      cwd: work,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }),
  python = does("python3", "-c", "import sys; print(sys.executable)").trim();
execFileSync(binary, ["account", "dora"], { env: server.env, input: `${password}\n` });

does("git", "init", "-q", ".");
for (const [commit, cache] of ["", "cache = bytearray(90 << 20)\n"].entries()) {
  writeFileSync(
    join(work, "train.py"),
    `import time\nheld = bytearray(30 << 20)\n${cache}time.sleep(0.3)\n`,
  );
  does("git", "add", "train.py");
  does("git", ...who, "commit", "-qm", `${commit}`);
  for (const again of ["one", "two"])
    does(
      binary,
      "run",
      "--quiet",
      "--push",
      "--name",
      `${again}-${commit}`,
      "--",
      python,
      "train.py",
    );
}
writeFileSync(join(work, "memory.yaml"), "host: 64MiB\n");
const check = spawnSync(
  binary,
  ["check", "--budget", "memory.yaml", "two-1", "--server", server.address.origin],
  { cwd: work, env, encoding: "utf8" },
);
assert.equal(check.status, 1, check.stderr);
// A member says what a page must not do.
const hostile = `<img src=x onerror="window.ran=1">`,
  hash = does("git", "rev-parse", "HEAD").trim(),
  said = await fetch(new URL(`/api/v1/projects/ranker/commits/${hash}/statuses`, server.address), {
    method: "POST",
    headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({
      state: "success",
      context: hostile,
      description: "<script>window.ran=1</script>`|x",
      target_url: "https://x.example/'+alert(1)+'",
    }),
  });
assert.equal(said.status, 200, await said.text());
// prettier-ignore
const comment = does(binary, "trend", "--server", server.address.origin, "--tag", "project=ranker", "--comment"),
  link = (name) => new RegExp(`\\[${name}\\]\\(([^)]+)\\)`).exec(comment)?.[1];
assert.match(comment, /`train\.py:3`/);
assert.ok(
  comment.includes(`- \`${hostile}\`: **success** \`<script>window.ran=1</script>??x\``),
  comment,
);

const browser = await launch(),
  context = await browser.newContext({ stranger: true }),
  tab = await context.newPage();
await tab.goto(link("Compare the two runs"));
await tab.locator('.signin input[name="name"]').fill("dora");
await tab.locator('.signin input[name="password"]').fill(password);
await tab.getByRole("button", { name: "Sign in" }).click();
await tab.getByText("host, by line").first().waitFor();
assert.equal(tab.url(), link("Compare the two runs"), "the way in loses the link");
await tab.getByText("host, by line").first().click();
const line = tab.getByRole("row", { name: /^train\.py:3 / });
await line.waitFor();
assert.match(await line.innerText(), /^train\.py:3\s+\+(8\d|9\d)\.\d MiB/);
await shot(tab, join(folder, "difference.png"), { fullPage: true });
await tab.goto(link("The run"));
await tab.getByText("train.py:3").first().waitFor();
await shot(tab, join(folder, "run.png"), { fullPage: true });
await tab.goto(link("The trend"));
await tab.locator("#commits .check.is-failure", { hasText: "hightide: failure" }).waitFor();
assert.match(
  await tab.locator("#commits .check.is-failure").innerText(),
  /over its budget of 64\.0 MiB/,
);
assert.equal(await tab.locator("svg.trend .is-failed").count(), 1);
await tab.locator("#commits .check.is-success", { hasText: hostile }).waitFor();
assert.equal(await tab.locator("#commits img").count(), 0);
assert.equal(await tab.evaluate(() => window.ran), undefined);
assert.deepEqual(await violations(tab), []);
await shot(tab, join(folder, "trend.png"), { fullPage: true });

await browser.close();
console.log(`pullrequest: 3 pages\n${shown(folder)}`);
process.exit(0); // with the servers
