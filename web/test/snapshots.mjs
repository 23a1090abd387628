// The list of snapshots, uploads and files that are named, in a real Chromium on the real server.
//   node test/snapshots.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  addressOf,
  askJSON,
  binary,
  fresh,
  here,
  launch,
  screenshots,
  serve,
  shot,
} from "./kit.mjs";

const real = here("../../testdata/real/h100-lm-ctx128-train-step.pickle");
const folder = screenshots("snapshots"),
  data = fresh("data"),
  files = fresh("files");
const env = { ...process.env, HIGHTIDE_DATA: data };
execFileSync(
  binary,
  [
    "--data-dir",
    join(files, "elsewhere"),
    "run",
    "--quiet",
    "--name",
    "guest",
    "--",
    "python3",
    "-c",
    "x = bytearray(30 << 20)",
  ],
  { env },
);
const [id] = readdirSync(join(files, "elsewhere", "runs")),
  recording = join(files, "elsewhere", "runs", id, "run.hightide");
const file = (name, text) => {
  const path = join(files, name);
  writeFileSync(path, text);
  return path;
};
const bad = file("broken.pickle", readFileSync(real).subarray(0, 40_000)),
  hostile = file("hostile.pickle", "cos\nsystem\n(S'touch ran'\ntR."),
  empty = file("empty.pickle", ""),
  words = file("words.txt", "nothing to see");
const large = file("large.pickle", "");
truncateSync(large, 3 * 2 ** 30);
copyFileSync(real, join(files, "mine.pickle"));

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }),
  tab = await context.newPage(),
  complaints = [];
tab.on(
  "console",
  (m) =>
    ["error", "warning"].includes(m.type()) &&
    !/status of (422|404)/.test(m.text()) &&
    complaints.push(m.text()),
); // the browser tells of each answer that is an error

tab.on("pageerror", (e) => complaints.push(e.message));
let passed = 0;
const ok = (said) => {
  passed++;
  void said;
};
const choose = (...paths) => tab.locator("#upload input[type=file]").setInputFiles(paths);
const narrow = async () => {
  assert.ok(
    (await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
    "the page is too wide",
  );
};

let server = await serve(env);
await tab.goto(addressOf(server, "/snapshots"));
await tab.getByText("No file is open").waitFor();
await tab.getByText("No run recorded a snapshot").waitFor();
await choose(real);
await tab.waitForURL(/\/snapshots\/[0-9a-f]+/);
await tab.locator(".stacked canvas").waitFor();
ok("a file that is chosen is shown as soon as it is read");

await tab.goto(addressOf(server, "/snapshots"));
const row = tab.locator("#snapshots tbody tr", { hasText: "h100-lm" });
await row.waitFor();
assert.match(await row.innerText(), /upload[\s\S]*MiB[\s\S]*19,770[\s\S]*[MG]iB/);
ok("it is listed with its events and its peak");

for (const [path, says] of [
  [bad, /broken\.pickle[\s\S]*(ends in the middle|cannot|whole|EOF)/],
  [hostile, /do not load this file/],
  [words, /unknown file format/],
  [empty, /empty/],
  [large, /3\.00 GiB[\s\S]*takes 2\.00 GiB[\s\S]*hightide ui large\.pickle/],
]) {
  await choose(path);
  await tab.locator(".upload.failed").waitFor();
  const said = await tab.locator(".upload.failed").innerText();
  assert.match(said, says);
  assert.ok(!said.includes(data), "a message names a place on the server");
  if (path === large) await shot(tab, join(folder, "snapshots-refused.png"));
  await tab.getByRole("button", { name: /^Forget/ }).click();
  await tab.locator(".upload").waitFor({ state: "detached" });
}
ok("files that are broken, hostile, of another kind, empty or too large are refused in one line");

// an upload that is cancelled leaves nothing: the network is slow
const slow = await context.newCDPSession(tab);
await slow.send("Network.enable");
await slow.send("Network.emulateNetworkConditions", {
  offline: false,
  latency: 0,
  downloadThroughput: -1,
  uploadThroughput: 200_000,
});
await choose(join(files, "mine.pickle"));
await tab.locator(".upload progress").waitFor();
await tab.getByRole("button", { name: "Cancel mine.pickle" }).focus();
const sent = () => tab.evaluate(() => document.querySelector(".upload progress").value),
  first = await sent();
while ((await sent()) === first) await new Promise((done) => setTimeout(done, 20));
assert.equal(
  await tab.evaluate(() => document.activeElement.getAttribute("aria-label")),
  "Cancel mine.pickle",
  "the button goes while it is being pressed",
);
await tab.getByRole("button", { name: "Cancel mine.pickle" }).click();
await tab.locator(".upload").waitFor({ state: "detached" });
await slow.send("Network.emulateNetworkConditions", {
  offline: false,
  latency: 0,
  downloadThroughput: -1,
  uploadThroughput: -1,
});
await row.waitFor(); // the list may be asked for again by now
assert.equal(await tab.locator("#snapshots tbody tr").count(), 1);
ok("an upload has its progress and can be cancelled");

// dropped anywhere, on another page
await tab.goto(addressOf(server, "/jobs"));
await tab.locator("h1").waitFor();
const carried = await tab.evaluateHandle((text) => {
  const all = new DataTransfer();
  all.items.add(
    new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], "dropped.hightide"),
  );
  return all;
}, readFileSync(recording).toString("base64"));
await tab.dispatchEvent("body", "dragenter", { dataTransfer: carried });
await tab.locator(".veil").waitFor();
await tab.dispatchEvent("body", "drop", { dataTransfer: carried });
await tab.waitForURL(/\/runs\/\w+/);
await tab.locator("h1").first().waitFor();
assert.equal(await tab.locator(".veil").isVisible(), false);
await tab.goto(addressOf(server, "/"));
await tab.locator("tr.run", { hasText: "guest" }).getByText("upload", { exact: true }).waitFor();
ok("a recording that is dropped on any page becomes a run");

await tab.goto(addressOf(server, "/snapshots"));
await row.getByRole("button", { name: /^Delete/ }).click();
await tab.getByText("No file is open").waitFor();
await tab.keyboard.press("z");
await row.waitFor();
await row.getByRole("button", { name: /^Delete/ }).click();
await tab.getByRole("button", { name: "Close this message" }).click();
for (;;) {
  const { snapshots } = await askJSON(server, "/snapshots");
  if (!snapshots.some((s) => s.from === "upload")) break;
  await new Promise((done) => setTimeout(done, 50));
}
ok("an upload is deleted, and back until the message is gone");
assert.deepEqual(complaints, [], "the page complains");
await server.end();

// files that are named
server = await serve(env, [
  recording,
  join(files, "mine.pickle"),
  here("../../testdata/real/h100-lm-ctx256-forward-bf16.pickle"),
]);
await tab.goto(server.address.href);
await tab.locator("tr.run", { hasText: "guest" }).getByText("file", { exact: true }).waitFor();
await tab.getByRole("link", { name: "guest" }).focus();
await tab.keyboard.press("r");
await tab.locator(".toast.bad", { hasText: "outside the data directory" }).waitFor();
await tab.getByRole("link", { name: "guest" }).click();
await tab.locator(".top .outcome, .outcome", { hasText: "done" }).first().waitFor();
ok("a recording from elsewhere is a run with its page");
await tab.goto(addressOf(server, "/snapshots"));
await tab.locator("#snapshots tbody tr", { hasText: "mine.pickle" }).getByText("19,770").waitFor();
await shot(tab, join(folder, "snapshots.png"), { fullPage: true });
for (const [width, scheme] of [
  [400, "dark"],
  [1280, "dark"],
  [400, "light"],
]) {
  await tab.setViewportSize({ width, height: 900 });
  await tab.emulateMedia({ colorScheme: scheme });
  await narrow();
  await shot(tab, join(folder, `snapshots-${width}-${scheme}.png`), { fullPage: true });
}
ok("the list fits 400 pixels");
await tab.setViewportSize({ width: 1280, height: 900 });

// two snapshots beside each other
await tab.goto(addressOf(server, "/snapshots"));
await tab
  .locator("#snapshots tbody tr", { hasText: "mine.pickle" })
  .getByRole("link", { name: "compare" })
  .click();
await tab.waitForURL(/\/diff\?a=/);
await tab.getByLabel("What the lists offer").fill("ctx256");
const other = await tab
  .getByLabel("After")
  .locator("optgroup[label=Snapshots] option")
  .first()
  .getAttribute("value");
await tab.getByLabel("After").selectOption(other);
await tab.locator("#difference svg").waitFor();
assert.match(await tab.locator("#difference h2").innerText(), /mine\.pickle → h100-lm-ctx256/);
await tab.locator("#bothcourses svg path").nth(1).waitFor();
assert.match(
  await tab.locator("h1").innerText(),
  /^The peak, reserved on the device, fell by 30\.0 GiB: 56\.9 GiB before, 26\.9 GiB after.*The largest change of Peak allocated is optimizers\.py:step, −25\.6 GiB/s,
);
const calls = tab.locator("#flamediff [role=treeitem]"),
  folded = await calls.count();
assert.ok(
  folded > 3 && (await tab.locator("#flamediff .folded").count()) > 0,
  "runs of C++ are one bar",
);
await tab.locator("#flamediff").getByRole("button", { name: "in full" }).click();
assert.ok(
  (await calls.count()) > folded && (await tab.locator("#flamediff .folded").count()) === 0,
  "in full they are not",
);
await tab.locator("#flamediff").getByRole("button", { name: "flames" }).click();
assert.ok(
  await tab
    .locator("#flamediff .icicle")
    .evaluate((box) => box.children[0].offsetTop > box.children[1].offsetTop),
  "the root lies at the foot",
);
const changes = await tab
  .locator("#difftable tbody td[style*='--bar']")
  .evaluateAll((all) =>
    all.map((c) => `${c.textContent[0]}${/--(more|less)/.exec(c.getAttribute("style"))[1]}`),
  );
assert.deepEqual(
  [...new Set(changes)].sort(),
  ["+more", "−less"],
  "more and less have bars of their own colour, and a sign",
);
assert.equal(await tab.locator("#bothcourses .saves button").count(), 2, "the curves can be saved");
const [saved] = await Promise.all([
  tab.waitForEvent("download"),
  tab.getByRole("button", { name: "One file to share" }).click(),
]);
assert.ok(
  saved.suggestedFilename() === "difference.html" &&
    /^<!doctype html/i.test(readFileSync(await saved.path(), "utf8")),
  "one file to share",
);
await shot(tab, join(folder, "diff-snapshots.png"), { fullPage: true });
const from = new URL(tab.url()).searchParams;
await tab.locator("h1").click(); // the list that was chosen from keeps the focus, and letters are its own
await tab.keyboard.press("s");
await tab.locator("#difference h2", { hasText: /ctx256.* → mine/ }).waitFor();
assert.equal(new URL(tab.url()).searchParams.get("a"), from.get("b"));
await tab.setViewportSize({ width: 400, height: 900 });
await narrow();
await shot(tab, join(folder, "diff-400.png"), { fullPage: true });
await tab.setViewportSize({ width: 1280, height: 900 });
ok("snapshots are compared, by their names, either way round");

// a page that is left is forgotten: its listeners go with it
const count = async () => {
  await slow.send("HeapProfiler.collectGarbage");
  return (await slow.send("Performance.getMetrics")).metrics.find(
    (m) => m.name === "JSEventListeners",
  ).value;
};
await slow.send("Performance.enable");
const around = async (times) => {
  for (let i = 0; i < times; i++) {
    await tab.locator(".bar a", { hasText: "Snapshots" }).click();
    await tab.getByText("Recorded by runs").waitFor();
    await tab.goBack();
    await tab.locator("#difference svg").waitFor();
    await tab.locator("#bothcourses svg path").nth(1).waitFor();
  }
  return count();
};
const few = await around(2),
  many = await around(8);
assert.ok(
  many < few * 1.3,
  `listeners grow with each time that a page is drawn: ${few}, then ${many}`,
);
ok("a page that is drawn again and again holds nothing of what it replaced");
await server.end();
assert.deepEqual(
  complaints.filter((c) => !/ERR_CONNECTION|ERR_INCOMPLETE/.test(c)),
  [],
  "the page complains",
);
await browser.close();
for (const gone of [data, files]) rmSync(gone, { recursive: true, force: true });
console.log(`${passed} passed, 0 failed`);
