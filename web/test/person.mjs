// What is kept of a person, in a real Chromium on a real server of a team: seen and saved, deleted by that person once the
// name was typed, and another's by an admin.
//   node test/person.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  ask,
  askJSON,
  binary,
  fresh,
  launch,
  savedFile,
  screenshots,
  shot,
  shown,
  violations,
} from "./kit.mjs";
import { team } from "./team.mjs";

const folder = screenshots("person"),
  server = await team(
    `admins = ["eve"]\n[projects.ranker]\nmembers = ["anna"]\nadmins = ["carol"]\n`,
    "eve",
    "admin",
  ),
  does = (args, { input = "", ...more } = {}) =>
    execFileSync(binary, args, { env: { ...server.env, ...more }, input, encoding: "utf8" }),
  password = "a long password";
for (const name of ["anna", "carol"]) {
  does(["account", name], { input: `${password}\n` });
  does(
    // prettier-ignore
    ["run", "--quiet", "--push", "--server", server.address.origin, "--project", "ranker", "--name", `of-${name}`, "--", "/bin/true"],
    {
      HIGHTIDE_KEY: server.key(name, "push"),
      HIGHTIDE_STORE: "",
      HIGHTIDE_OBJECTS: "",
      HIGHTIDE_DATA: fresh("own"),
    },
  );
}
const browser = await launch();
let passed = 0;

/** Signs in as somebody, in a browser of its own. */
async function as(name, check) {
  const context = await browser.newContext({ stranger: name !== "eve", acceptDownloads: true }),
    tab = await context.newPage();
  await tab.goto(new URL("/person", server.address).href);
  if (name !== "eve") {
    await tab.locator('.signin input[name="name"]').fill(name);
    await tab.locator('.signin input[name="password"]').fill(password);
    await tab.getByRole("button", { name: "Sign in" }).click();
  }
  await check(tab);
  await context.close();
  passed++;
}

/** What a row of the table says. */
const row = (tab, name) => tab.locator("#kept tr", { hasText: name }).locator("td").innerText();

/** Opens the dialog, and deletes once the name stands there. */
async function erase(tab, name, keep) {
  await tab.getByRole("button", { name: "Delete it …" }).click();
  const last = tab.getByRole("button", { name: "Delete for ever" });
  assert.ok(await last.isDisabled(), "it deletes without asking");
  await tab.getByLabel("The name, to confirm").fill("somebody");
  assert.ok(await last.isDisabled(), "another name confirms");
  if (keep) await tab.getByRole("checkbox").check();
  assert.deepEqual(await violations(tab), []);
  await tab.getByLabel("The name, to confirm").fill(name);
  await last.click();
}

const runs = async () => (await askJSON(server, "/runs")).runs.map((r) => r.name).sort();

await as("anna", async (tab) => {
  await tab.locator("#kept").waitFor();
  assert.equal(await tab.locator('nav a[href="/person"][aria-current="page"]').count(), 1);
  assert.deepEqual(
    [await row(tab, "Account"), await row(tab, "Keys"), await row(tab, "Runs")],
    ["with a password", "1", "1"],
  );
  assert.deepEqual(await violations(tab), []);
  await savedFile(browser, tab, "person", folder, async (alone) =>
    assert.deepEqual([await row(alone, "Keys"), await row(alone, "Runs")], ["1", "1"]),
  );
  const saved = tab.waitForEvent("download");
  await tab.getByRole("button", { name: "Save all of it" }).click();
  const listed = execFileSync("tar", ["-tzf", await (await saved).path()], { encoding: "utf8" });
  assert.match(listed, /^person\.json$/m);
  assert.match(listed, /^runs\/[0-9a-z]+\/run\.hightide$/m);
  await shot(tab, join(folder, "own.png"), { fullPage: true });
  await tab.goto(new URL("/person?name=carol", server.address).href);
  await tab.locator(".failure").waitFor();
  assert.match(await tab.locator(".failure").innerText(), /is seen by that one/);
  await tab.goto(new URL("/person", server.address).href);
  await tab.locator("#kept").waitFor();
  await erase(tab, "anna", false); // a member deletes no runs
  await tab.locator("dialog [role=alert]", { hasText: "deleted by its admins" }).waitFor();
  await shot(tab, join(folder, "asks.png"));
  assert.deepEqual(await runs(), ["of-anna", "of-carol"]);
  await tab.getByRole("checkbox").check();
  await tab.getByRole("button", { name: "Delete for ever" }).click();
  await tab.locator(`.signin input[name="password"]`).waitFor(); // the dialog looks like it
  assert.deepEqual(await runs(), ["of-anna", "of-carol"]);
});
const again = await fetch(new URL("/api/v1/session", server.address), {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ name: "anna", password }),
});
assert.equal(again.status, 401, "the account is still there");

await as("eve", async (tab) => {
  await tab.locator("#kept").waitFor();
  await tab.getByLabel("Name of an account").fill("carol");
  await tab.getByLabel("Name of an account").press("Enter");
  await tab.getByRole("heading", { name: "What is kept of carol" }).waitFor();
  await tab.locator("#kept").waitFor();
  assert.equal(await row(tab, "Runs"), "1");
  await erase(tab, "carol", false);
  await tab.locator(".toast", { hasText: "Nothing is kept of carol" }).waitFor();
  await tab.locator("#kept tr", { hasText: "none with a password" }).waitFor();
  assert.equal(await row(tab, "Runs"), "0");
  assert.deepEqual(await runs(), ["of-anna"]);
});
const log = await (await ask(server, "/api/v1/audit")).text();
assert.match(log, /deletes what is kept of a deleted person/);
assert.doesNotMatch(log, /"anna|carol/);

await browser.close();
console.log(`person: ${passed} pages\n${shown(folder)}`);
process.exit(0); // with the servers
