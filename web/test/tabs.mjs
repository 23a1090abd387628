// Many tabs of one live run in a real Chromium on the real server: a browser has six connections to a server over all tabs, and each tab goes on.
// On the loopback, and by plain HTTP at the machine's own address, where a page is no secure context.
//   node test/tabs.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { addressOf, fresh, launch, screenshots, serve, shot, shown } from "./kit.mjs";
import { liveRun } from "./world.mjs";

const folder = screenshots("tabs"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") },
  many = 10,
  browser = await launch();

/** The moment up to which a tab's tracks reach. */
const reaches = (tab) =>
  tab.evaluate(() => Number(document.querySelector("[data-end]").dataset.end));
const goesOn = (tab, before) =>
  tab.waitForFunction(
    (before) => Number(document.querySelector("[data-end]").dataset.end) > before,
    before,
  );
const see = (tab, is) =>
  tab.evaluate((is) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => !is });
    document.dispatchEvent(new Event("visibilitychange"));
  }, is);

/** How many places are held, by the browser's locks or by tickets. */
const held = (tab) =>
  tab.evaluate(async () => {
    const prefix = "hightide-listens",
      tickets = Object.entries(localStorage).filter(([k]) => k.startsWith("hightide-ticket-")),
      locks = (await navigator.locks?.query())?.held ?? tickets.map(([, t]) => JSON.parse(t));
    return new Set(locks.map((l) => l.name).filter((name) => name.startsWith(prefix))).size;
  });

/** A context and the requests of it that listen now. */
async function listener() {
  const context = await browser.newContext(),
    listening = new Set(),
    most = { atATime: 0 };
  context.on("request", (r) => {
    if (!/\/live(\?|$)/.test(r.url())) return;
    listening.add(r);
    most.atATime = Math.max(most.atATime, listening.size);
  });
  for (const ends of ["requestfinished", "requestfailed"])
    context.on(ends, (r) => listening.delete(r));
  return { context, listening, most };
}

/** Opens a run in so many tabs. */
async function open(context, server, name) {
  const first = await context.newPage(),
    tabs = [first];
  await first.goto(addressOf(server, "/"));
  const path = await first.locator("tr.run a.name", { hasText: name }).getAttribute("href");
  await first.goto(addressOf(server, path));
  while (tabs.length < many) {
    tabs.push(await context.newPage());
    await tabs.at(-1).goto(addressOf(server, path));
  }
  return tabs;
}

/** What holds at any address. */
async function taken(at, secure) {
  const name = secure ? "at home" : "by plain HTTP",
    going = liveRun(env, name),
    server = await serve(env, [], `${at}:0`),
    { context, listening, most } = await listener(),
    tabs = await open(context, server, name);
  assert.equal(await tabs[0].evaluate(() => isSecureContext), secure);
  // each shows the run, and what it shows goes on
  for (const tab of tabs) {
    await tab.locator("#timeline canvas").first().waitFor();
    await goesOn(tab, await reaches(tab));
  }
  await shot(tabs.at(-1), join(folder, `tenth-${secure ? "secure" : "plain"}.png`));
  const holders = await held(tabs[0]);
  assert.ok(
    holders >= 2 && holders <= 4 && most.atATime < many,
    `${holders} listen now, ${most.atATime} at a time as the browser tells with a delay`,
  );

  // none that nobody sees listens; it goes on when it is seen
  const last = tabs.at(-1);
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

  // a link is copied without the clipboard's interface, which is of secure contexts alone
  await last.locator("button.share").click();
  await last.locator("dialog button", { hasText: "Copy the link" }).click();
  await last.locator(".toast", { hasText: "is copied" }).waitFor();
  await context.close();
  await server.end();
}

await taken("127.0.0.1", true);
const own = Object.values(networkInterfaces())
  .flat()
  .find((i) => i.family === "IPv4" && !i.internal)?.address;
if (own) await taken(own, false);
await browser.close();
console.log(
  `${shown(folder)}${many} tabs at ${own ? "two addresses" : "127.0.0.1; this machine has no other address"}, 0 failed`,
);
