// What people of a team and outside it share, in a real Chromium on a real server of a team: a link to one run that a member
// makes, in the browser of a stranger, until it ends.
//   node test/sharing.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import {
  addressOf,
  ask,
  binary,
  launch,
  opened,
  savedFile,
  screenshots,
  shot,
  shown,
  sound,
} from "./kit.mjs";
import { team } from "./team.mjs";

const folder = screenshots("sharing"),
  server = await team(`[projects.ranker]\nmembers = ["anna"]\n`, "anna", "push"),
  record = (name) =>
    execFileSync(
      binary,
      ["run", "--quiet", "--tag", "project=ranker", "--name", name, "--", "/bin/sleep", "0.3"],
      { env: server.env },
    );
record("shared");
record("hidden");
const runs = (await (await ask(server, "/api/v1/runs")).json()).runs,
  idOf = (name) => runs.find((r) => r.name === name).id,
  page = `/runs/${idOf("shared")}?at=100000000`,
  browser = await launch();
let passed = 0,
  link = "";

await opened(browser, "make", addressOf(server, page), {}, async (tab) => {
  await tab.locator("button.toggle.share").click();
  await tab.locator(".outside-links").waitFor();
  await tab.getByRole("button", { name: "Make a link" }).click();
  await tab.locator(".outside-links li").waitFor();
  link = await tab.locator(".outside-links .address").innerText();
  await shot(tab, join(folder, "make.png"));
  passed++;
});
assert.match(link, /\/runs\/[^#]+at=100000000#share=[0-9A-Za-z]{20,}$/);
const secret = link.split("#share=")[1];

// A comment is text, whatever stands in it, and leads to its moment.
const attack = `<img src=x onerror="document.title='taken'">\n<script>document.title='taken'</script>`;
await opened(browser, "comments", addressOf(server, page), { downloads: true }, async (tab) => {
  const form = tab.locator(".comment-form");
  await form.locator("textarea").fill(attack);
  await form.locator("select").selectOption("at");
  await form.getByRole("button", { name: "Comment" }).click();
  await tab.locator(".comments li").waitFor();
  assert.equal(await tab.locator(".comments .said").innerText(), attack);
  assert.equal(await tab.locator(".comments :is(img, script)").count(), 0);
  assert.match(await tab.locator(".comments li").innerText(), /anna .*at 100 ms/);
  const long = "in/a/folder/far/below".repeat(12);
  await form.locator("textarea").fill(`the second, ${long}`);
  await form.locator("select").selectOption("");
  await form.getByRole("button", { name: "Comment" }).click();
  await tab.locator(".comments li").nth(1).waitFor();
  const { width, height } = tab.viewportSize();
  await tab.setViewportSize({ width: 400, height });
  await form.locator("select").evaluate((s, name) => s.append(new Option(name)), `on leak ${long}`);
  await sound(tab, "comments on a phone");
  await tab.setViewportSize({ width, height });
  await tab.locator(".comments li").nth(1).getByRole("button", { name: "Delete" }).click();
  await tab.locator(".comments li").nth(1).waitFor({ state: "detached" });
  await tab.reload();
  await tab.locator(".comments li").waitFor();
  assert.notEqual(await tab.title(), "taken");
  await tab.locator("#comments").scrollIntoViewIfNeeded();
  await shot(tab, join(folder, "comments.png"));
  await savedFile(browser, tab, "commented", folder, async (alone) => {
    assert.equal(await alone.locator(".comments .said").innerText(), attack);
    assert.equal(await alone.locator(".comments :is(img, script)").count(), 0);
    await alone.getByRole("button", { name: "at 100 ms" }).click();
    assert.match(alone.url(), /at=100000000/);
    assert.notEqual(await alone.title(), "taken");
  });
  passed++;
});

/** What a page of one file has in it. */
const inFile = (page) =>
  JSON.parse(gunzipSync(Buffer.from(/id="hightide-report">([^<]+)</.exec(page)[1], "base64")));

/** A browser that nobody has let in opens the link; each of its requests is looked through for the secret. */
async function stranger(scheme, check) {
  const context = await browser.newContext({ stranger: true, colorScheme: scheme }),
    tab = await context.newPage();
  tab.on("request", (r) => {
    const { referer = "", cookie = "" } = r.headers();
    for (const text of [r.url(), referer, cookie])
      assert.ok(!text.includes(secret), `the secret goes out in ${text}`);
    if (r.postData()?.includes(secret)) assert.equal(new URL(r.url()).pathname, "/api/v1/session");
  });
  await tab.goto(link);
  await check(tab);
  await context.close();
  passed++;
}

await stranger("light", async (tab) => {
  await tab.locator("#timeline").waitFor();
  assert.match(await tab.title(), /shared/);
  const now = new URL(tab.url());
  assert.equal(now.hash, "", "the secret stays in the address");
  assert.equal(now.searchParams.get("at"), "100000000", "the selection is lost");
  assert.equal(await tab.locator(".bar nav a").count(), 0);
  const told = await tab.evaluate(async (other) => {
    const headers = { "X-Hightide-Page": localStorage.getItem("hightide-page") },
      asked = async (path, method = "GET") =>
        (await fetch(`/api/v1${path}`, { method, headers })).status;
    return [
      await asked("/runs/last"),
      await asked(`/runs/${other}`),
      await asked("/runs/last", "DELETE"),
    ];
  }, idOf("hidden"));
  assert.deepEqual(told, [200, 404, 403]);
  const file = await tab.evaluate(async () => {
    const headers = { "X-Hightide-Page": localStorage.getItem("hightide-page") };
    return (await fetch("/api/v1/runs/last/report.html", { headers })).text();
  });
  assert.ok(!("comments" in inFile(file)), "people outside see comments in the file");
  assert.equal(await tab.locator("#comments").count(), 0, "people outside see comments");
  await tab.locator("button.toggle.share").click();
  await tab.locator(".share-sheet").waitFor();
  assert.equal(await tab.locator(".outside-links").isVisible(), false);
  await shot(tab, join(folder, "outside.png"));
});

// Who is of the team goes on as who it is.
await opened(browser, "member", link, {}, async (tab) => {
  await tab.locator("#timeline").waitFor();
  assert.ok((await tab.locator(".bar nav a").count()) > 1);
  await tab.locator("button.toggle.share").click();
  await tab.getByRole("button", { name: "End it" }).click();
  await tab.locator(".outside-links li").waitFor({ state: "detached" });
  passed++;
});

await stranger("dark", async (tab) => {
  await tab.getByRole("heading", { name: "This link has ended" }).waitFor();
  const back = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(
    back.match(/\d+/g).every((part) => Number(part) < 60),
    `bright where the system asks for dark: ${back}`,
  );
  await shot(tab, join(folder, "ended.png"));
});

await browser.close();
console.log(`sharing: ${passed} passed\n${shown(folder)}`);
process.exit(0);
