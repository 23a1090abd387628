// What pages show while the database of a team is away, in a real Chromium on a real server of a team whose real PostgreSQL is
// killed: one message, and all is there again by itself once it is back.
//   node test/outage.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { addressOf, ask, askJSON, binary, launch, screenshots, shot, shown } from "./kit.mjs";
import { team } from "./team.mjs";

const folder = screenshots("outage"),
  server = await team(`[projects.ranker]\nmembers = ["anna"]\n`, "anna", "push"),
  record = (name) =>
    execFileSync(
      binary,
      ["run", "--quiet", "--tag", "project=ranker", "--name", name, "--", "/bin/true"],
      { env: server.env },
    );
record("before");
const [{ id }] = (await askJSON(server, "/runs")).runs,
  password = "a long password";
execFileSync(binary, ["account", "anna"], { env: server.env, input: `${password}\n` });
const browser = await launch(),
  context = await browser.newContext({ stranger: true });
let passed = 0;

// A person who signed in with a password, which the database knows.
const first = await context.newPage();
await first.goto(addressOf(server, "/"));
await first.locator('.signin input[name="name"]').fill("anna");
await first.locator('.signin input[name="password"]').fill(password);
await first.getByRole("button", { name: "Sign in" }).click();
await first.getByRole("link", { name: "before" }).first().waitFor();
await first.close();

/** Pages that stand open, and pages that are opened meanwhile. */
const paths = {
    "/": (tab) => tab.getByRole("link", { name: "before" }).first(),
    [`/runs/${id}`]: (tab) => tab.locator("#comments"),
    "/trend": (tab) => tab.locator(".empty"),
    "/person": (tab) => tab.locator("#kept"),
  },
  open = async (path) => {
    const tab = await context.newPage();
    tab.loads = 0;
    tab.on("load", () => tab.loads++);
    await tab.goto(addressOf(server, path));
    return tab;
  };
const standing = new Map();
for (const [path, seen] of Object.entries(paths)) {
  const tab = await open(path);
  await seen(tab).waitFor();
  standing.set(path, tab);
}

for (let turn = 0; turn < 2; turn++) {
  await server.database.kill();
  const meanwhile = new Map();
  for (const path of Object.keys(paths)) {
    const tab = await open(path);
    await tab.locator(".away", { hasText: "does not answer" }).waitFor();
    assert.equal(await tab.locator(".away:visible").count(), 1, `${path}: one message`);
    assert.equal(await tab.locator(".signin, .refused").count(), 0, `${path}: asks to sign in`);
    meanwhile.set(path, tab);
  }
  const told = await ask(server, "/api/v1/runs");
  assert.equal(told.status, 503);
  assert.equal(told.headers.get("content-type"), "application/problem+json");
  const { detail } = await told.json();
  assert.doesNotMatch(detail, /dial|pq:|socket|\/tmp|panic/, "the message is for people");
  for (const [path, tab] of standing) assert.equal(tab.loads, 1, `${path} was loaded again`);
  const signs = await fetch(new URL("/api/v1/session", server.address), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: "anna", password }),
  });
  assert.equal(signs.status, 503, "a right password is called wrong");
  await shot(meanwhile.get("/"), join(folder, `away-${turn}.png`));
  await server.database.again();
  for (const [path, seen] of Object.entries(paths)) {
    for (const tab of [meanwhile.get(path), standing.get(path)]) {
      await seen(tab).waitFor();
      await tab.locator(".away").waitFor({ state: "hidden" });
      assert.equal(tab.loads, 1, `${path} was loaded again`);
      passed++;
    }
    await meanwhile.get(path).close();
  }
}

await browser.close();
console.log(`outage: ${passed} pages\n${shown(folder)}`);
process.exit(0); // with the servers
