// Many tabs of one live run in a real Chromium on the real server: a browser has six connections to a server over all tabs, and each tab goes on.
//   node test/tabs.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { join } from "node:path";
import { addressOf, fresh, launch, screenshots, serve, shot, shown } from "./kit.mjs";
import { liveRun } from "./world.mjs";

const folder = screenshots("tabs"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") };
const going = liveRun(env),
  server = await serve(env),
  browser = await launch(),
  context = await browser.newContext();
const many = 10,
  listening = new Set();
let most = 0;
context.on("request", (r) => {
  if (/\/live(\?|$)/.test(r.url())) {
    listening.add(r);
    most = Math.max(most, listening.size);
  }
});
for (const ends of ["requestfinished", "requestfailed"])
  context.on(ends, (r) => listening.delete(r));

const first = await context.newPage();
await first.goto(addressOf(server, "/"));
await first.locator("tr.run a.name", { hasText: "going" }).waitFor();
const path = await first.locator("tr.run a.name").first().getAttribute("href"),
  tabs = [first];
await first.goto(addressOf(server, path));
while (tabs.length < many) {
  const tab = await context.newPage();
  tabs.push(tab);
  await tab.goto(addressOf(server, path));
}
// each shows the run, and what it shows goes on: the moment up to which its tracks reach
const reaches = (tab) =>
    tab.evaluate(() => Number(document.querySelector("[data-end]").dataset.end)),
  goesOn = (tab, before) =>
    tab.waitForFunction(
      (before) => Number(document.querySelector("[data-end]").dataset.end) > before,
      before,
    );
for (const [i, tab] of tabs.entries()) {
  await tab.locator("#timeline canvas").first().waitFor();
  await goesOn(tab, await reaches(tab));
  if (i === many - 1) await shot(tab, join(folder, "tenth.png"));
}
const holders = await first.evaluate(
  async () =>
    (await navigator.locks.query()).held.filter((l) => l.name.startsWith("hightide-listens"))
      .length,
);
assert.ok(
  holders >= 2 && holders <= 4 && most < many,
  `${holders} listen now, ${most} at a time as the browser tells with a delay`,
);

// none that nobody sees listens; it goes on when it is seen
const last = tabs.at(-1),
  see = (tab, is) =>
    tab.evaluate((is) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => !is });
      document.dispatchEvent(new Event("visibilitychange"));
    }, is);
for (const tab of tabs) await see(tab, false);
while (listening.size > 0) await new Promise((done) => setTimeout(done, 50));
const still = await reaches(last);
await see(last, true);
await goesOn(last, still);
assert.equal(listening.size, 1);

// and a run's end is told to each that is seen
for (const tab of tabs) await see(tab, true);
await going.end();
for (const tab of tabs) await tab.locator(".live-state", { hasText: "ended" }).waitFor();

await browser.close();
await server.end();
console.log(`${shown(folder)}${many} tabs, 0 failed`);
