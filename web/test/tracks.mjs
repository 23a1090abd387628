// The timelines of a run in a real Chromium on the real server: while it is recorded, over a restart of the server, and by hand.
//   node test/tracks.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import {
  addressOf,
  begin,
  binary,
  fresh,
  launch,
  openAgain,
  screenshots,
  serve,
  shot,
} from "./kit.mjs";

const folder = screenshots("tracks"),
  data = fresh("data"),
  env = { ...process.env, HIGHTIDE_DATA: data };
let server = await serve(env);
const { host } = server.address,
  address = addressOf(server, "/");
const browser = await launch(),
  context = await browser.newContext({
    viewport: { width: 1280, height: 1000 },
    reducedMotion: "reduce",
  });
let tab = await context.newPage(),
  away = false,
  passed = 0;
const complaints = [];
function listen() {
  // The program's output was not kept, so that the server has none of it; the browser tells of each such answer.
  tab.on(
    "console",
    (m) =>
      !away &&
      !m.location().url.includes("/output/") &&
      ["error", "warning"].includes(m.type()) &&
      complaints.push(`${m.text()} ${m.location().url}`),
  );
  tab.on("pageerror", (e) => complaints.push(e.message));
}
listen();
const ok = (said) => {
  passed++;
  void said;
};
const timeline = () => tab.locator("#timeline"),
  number = async (name) => Number(await timeline().getAttribute(name));
const seen = async () => (await timeline().getAttribute("data-seen")).split("-").map(Number);
const width = async () => {
  const [from, to] = await seen();
  return to - from;
};
/** Waits until something holds of what is shown, however slow the machine. */
const until = (check, what) => tab.waitForFunction(check, what, { polling: 50 });
const grown = (by) =>
  until(({ by, from }) => Number(document.querySelector("#timeline").dataset.end) > from + by, {
    by,
    from: 0,
  });
const rest = () => tab.evaluate(() => new Promise((done) => setTimeout(done, 200))); // longer than the page waits for a hand to rest
const track = (title, list = ".groups") =>
  tab.locator(`#timeline ${list} .track`, { hasText: title }).first();
/** Pixels of a track that are not background. */
const inked = (title) =>
  track(title)
    .locator("canvas")
    .evaluate((c) => {
      const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
      let n = 0;
      for (let i = 3; i < data.length; i += 4) n += data[i] > 0 ? 1 : 0;
      return n;
    });

const go = join(data, "go"),
  more = join(data, "more");
const program = `import os, time
kept = []
while not os.path.exists(${JSON.stringify(go)}):
    kept.append(bytearray(1 << 20)) if len(kept) < (300 if os.path.exists(${JSON.stringify(more)}) else 40) else None
    time.sleep(0.02)`;
const live = begin(
  binary,
  [
    "run",
    "--quiet",
    "--name",
    "growing",
    "--interval",
    "50ms",
    "--alert",
    "host.rss>30MiB",
    "--",
    "python3",
    "-c",
    program,
  ],
  { env, stdio: "ignore" },
);
const ended = new Promise((done) => live.on("exit", done));
await tab.goto(address);
await tab.getByRole("link", { name: "growing" }).click();
await track("Host memory").waitFor();
await tab.waitForURL(/runs\//);
const run = tab.url();

const first = await number("data-end");
await until((from) => Number(document.querySelector("#timeline").dataset.end) > from + 2e9, first);
assert.ok((await inked("Host memory")) > 300, "the curve is drawn");
const [shown, whole] = await timeline().evaluate((e) => [e.dataset.seen, e.dataset.end]);
assert.equal(shown, `0-${whole}`, "the whole run is shown");
ok("tracks grow with the run");
assert.ok(
  (await tab.locator(".no-end").count()) > 0 &&
    (await tab.locator(".no-end:visible").count()) === 0,
  "of what goes on, the missing end is no news",
);

await track("Events").waitFor();
await tab.locator("#timeline .events summary", { hasText: "event" }).waitFor();
await tab.locator("#timeline .events", { hasText: "alert" }).waitFor(); // another event may have come before it
ok("an alert is an event, as a mark and in the list");
await tab.locator("#timeline .events .plain").last().click();
await tab.locator("#timeline .reading", { hasText: /alert|host\.rss/ }).waitFor(); // read out at its moment
ok("an event of the list leads to its moment");

// The end is followed until the hand pans.
await tab.locator("#timeline .tracks").focus();
await tab.keyboard.press("Escape");
for (let i = 0; i < 4; i++) await tab.keyboard.press("w");
await rest();
assert.ok((await width()) < (await number("data-end")) / 2, "w zooms in");
await tab.getByRole("button", { name: "Follow the end" }).click();
const wide = await width(),
  before = await number("data-end");
await until((from) => Number(document.querySelector("#timeline").dataset.end) > from + 1e9, before);
const [, to] = await seen();
assert.ok(to > before, "the end moves");
assert.ok(Math.abs((await width()) - wide) < wide / 50, "as much is shown as before");
assert.match(tab.url(), /last=\d+/);
await tab.keyboard.press("a");
await rest();
assert.doesNotMatch(tab.url(), /last=/);
assert.match(tab.url(), /t=\d+-\d+/);
const kept = await seen(),
  later = await number("data-end");
await until((from) => Number(document.querySelector("#timeline").dataset.end) > from + 5e8, later);
assert.deepEqual(await seen(), kept, "who looks back is left there");
await tab.getByRole("button", { name: "Follow the end" }).waitFor();
ok("the end is followed until the reader pans");
await tab.keyboard.press("f");
await rest();

// The server goes away and comes back at the same address.
away = true;
await server.end();
await tab.getByText("The server went away").waitFor();
writeFileSync(more, "");
server = await serve(env, [], host);
await openAgain(tab, server);
const gone = await number("data-end");
await until((from) => Number(document.querySelector("#timeline").dataset.end) > from + 1e9, gone);
away = false;
const holes = await tab.evaluate(async (id) => {
  const { series } = await (
    await fetch(`/api/v1/runs/${id}/series?name=host.rss&points=100000`, {
      headers: { "X-Hightide-Page": localStorage.getItem("hightide-page") },
    })
  ).json();
  return series[0].x.length;
}, run.split("/").at(-1));
assert.ok(holes > 20);
ok("the page goes on after a restart of the server");

writeFileSync(go, "");
await ended;
await tab.locator(".live-state", { hasText: "has ended" }).waitFor();
await rest();
ok("the end comes by itself");

// By hand, on the run that has ended.
await track("Host memory").scrollIntoViewIfNeeded();
const end = await number("data-end"),
  plot = await track("Host memory").locator(".plot").boundingBox();
const at = (share) => plot.x + plot.width * share,
  row = plot.y + plot.height / 2;
await tab.mouse.move(at(0.5), row);
await until(() => /^at /.test(document.querySelector("#timeline .reading").textContent));
assert.match(await track("Host memory").locator("dd").first().innerText(), /\d+(\.\d+)? MiB/);
const halfway = await track("Host memory").locator("dd").first().innerText();
await tab.mouse.move(at(0.02), row);
await until(
  (text) => document.querySelector("#timeline .groups .of-curves dd").textContent !== text,
  halfway,
);
assert.equal(
  await tab
    .locator("#timeline .plot .cross")
    .evaluateAll((all) => new Set(all.map((c) => getComputedStyle(c).left)).size),
  1,
  "the line stands at one place in all tracks",
);
ok("the values of the moment under the pointer");

await tab.mouse.move(at(0.25), row);
await tab.mouse.wheel(0, -300);
await rest();
const [a, b] = await seen();
assert.ok(
  b - a < end && Math.abs((end * 0.25 - a) / (b - a) - 0.25) < 0.03,
  `the wheel zooms at the pointer: ${a} to ${b} of ${end}`,
);
ok("the wheel zooms at the pointer");
await tab.keyboard.down("Shift");
await tab.mouse.move(at(0.5), row);
await tab.mouse.down();
await tab.mouse.move(at(0.4), row, { steps: 5 });
await tab.mouse.up();
await tab.keyboard.up("Shift");
await rest();
const panned = await seen();
assert.ok(
  Math.abs(panned[0] - a - (b - a) / 10) < (b - a) / 50,
  `shift and drag pan: ${panned} from ${a}`,
);
await tab.mouse.move(at(0.5), row);
await tab.mouse.down({ button: "middle" });
await tab.mouse.move(at(0.6), row, { steps: 5 });
await tab.mouse.up({ button: "middle" });
await rest();
assert.ok(Math.abs((await seen())[0] - a) < (b - a) / 50, "so does the middle button, back");
ok("drags pan");
for (const [key, narrower] of [
  ["w", true],
  ["s", false],
]) {
  const was = await width();
  await tab.keyboard.press(key);
  await rest();
  assert.equal((await width()) < was, narrower, key);
}
for (const [key, sign] of [
  ["d", 1],
  ["a", -1],
]) {
  const [was] = await seen();
  await tab.keyboard.press(key);
  await rest();
  assert.equal(Math.sign((await seen())[0] - was), sign, key);
}
await tab.keyboard.press("f");
await rest();
assert.deepEqual(await seen(), [0, end]);
ok("w, a, s, d and f");

const map = await tab.locator("#timeline .minimap").boundingBox(),
  mid = map.y + map.height / 2,
  on = (share) => map.x + map.width * share;
const drag = async (from, to) => {
  await tab.mouse.move(on(from), mid);
  await tab.mouse.down();
  await tab.mouse.move(on(to), mid, { steps: 6 });
  await tab.mouse.up();
  await rest();
};
const shares = async () => (await seen()).map((t) => t / end);
const near = async (from, to, said) => {
  const [x, y] = await shares();
  assert.ok(Math.abs(x - from) < 0.02 && Math.abs(y - to) < 0.02, `${said}: ${x} to ${y}`);
};
await drag(0.3, 0.6);
await near(0.3, 0.6, "a drag on the small picture brushes");
await drag(0.6, 0.8);
await near(0.3, 0.8, "an edge is dragged");
await drag(0.5, 0.4);
await near(0.2, 0.7, "the middle is dragged");
await tab.locator("#timeline .minimap .from").focus();
for (let i = 0; i < 5; i++) await tab.keyboard.press("ArrowRight");
await rest();
await near(0.25, 0.7, "arrow keys move an edge");
ok("the brush");

await tab.mouse.move(at(0.2), row);
await tab.mouse.down();
await tab.mouse.move(at(0.6), row, { steps: 6 });
await tab.mouse.up();
const range = tab.locator("#timeline .range");
assert.match(await range.innerText(), /Host memory: RSS/);
const cells = await range
  .locator("tr", { hasText: "Host memory: RSS" })
  .first()
  .locator("td")
  .allInnerTexts();
assert.ok(
  cells.length === 4 && cells.slice(0, 3).every((c) => /MiB/.test(c)) && /[+−±]/.test(cells[3]),
  `lowest, mean, highest, change: ${cells}`,
);
await shot(tab, join(folder, "tracks-range.png"));
ok("a chosen stretch has its figures");

await track("Processor").hover();
await track("Processor").getByRole("button", { name: /^Pin/ }).click();
await track("Processor", ".pins").waitFor();
assert.equal(
  await tab.evaluate(() => document.activeElement?.closest(".pins") !== null),
  true,
  "the focus goes along",
);
await tab.evaluate(() => document.activeElement.blur());
await tab.locator("#timeline .tracks").focus();
await tab.keyboard.press("/");
await tab.keyboard.type("pgflt");
await until(() => {
  const all = [...document.querySelectorAll("#timeline .groups .track-title")];
  return all.length > 0 && all.every((t) => t.textContent.startsWith("Page faults"));
});
await tab.keyboard.press("Escape");
await until(() =>
  [...document.querySelectorAll("#timeline .groups .track-title")].some(
    (t) => t.textContent === "Host memory",
  ),
);
// tracks of which nothing is to be drawn are one line, which unfolds; the finder finds them all the same
const still = tab.locator("#timeline .still-line .group-head").last(),
  names = (await still.locator("small").textContent()).split(" · ");
assert.match(
  await still.textContent(),
  new RegExp(`^${names.length} tracks? (stays?|is|are) (at 0|0 so far)`),
);
assert.equal(await track(names[0]).count(), 0);
await still.click();
await track(names[0]).waitFor();
await until((name) => {
  const all = [...document.querySelectorAll(`#timeline .groups .track`)]
    .filter((t) => t.querySelector(".track-title")?.textContent === name)
    .flatMap((t) => [...t.querySelectorAll("dd")]);
  return all.length > 0 && all.every((d) => /^0\b/.test(d.innerText));
}, names[0]);
assert.match(tab.url(), /open=still-/);
assert.ok(await still.evaluate((e) => e === document.activeElement), "the focus stays");
await still.press("Enter");
await track(names[0]).waitFor({ state: "detached" });
await tab.keyboard.press("/");
await tab.keyboard.type(names[0]);
await track(names[0]).waitFor();
await tab.keyboard.press("Escape");
await track(names[0]).waitFor({ state: "detached" });
await tab.locator("#timeline .group-head", { hasText: "main" }).click();
assert.equal(
  await tab.locator("#timeline .group-head", { hasText: "main" }).getAttribute("aria-expanded"),
  "false",
);
// the palette leads to a track of a folded group, and unfolds it
await track("Open files").waitFor({ state: "detached" });
await tab.keyboard.press("Control+k");
await tab.keyboard.type("Track: Open files");
await tab.keyboard.press("Enter");
await track("Open files").waitFor();
await until(() => {
  const row = document.activeElement?.closest(".track"),
    { top, bottom } = row?.getBoundingClientRect() ?? { top: -1, bottom: 0 };
  return row?.textContent.includes("Open files") && top >= 0 && bottom <= innerHeight;
});
await tab.locator("#timeline .group-head", { hasText: "main" }).click();
await tab.locator("#timeline .tracks").focus();
await tab.keyboard.press("y");
await tab.mouse.move(0, 0); // under a pointer that stays there, the values are of its moment, which no address has
await tab.keyboard.press("ArrowRight");
await rest();
ok("pins, the finder, folded groups");

const permalink = tab.url(),
  view = await seen(),
  reading = await tab.locator("#timeline .reading").innerText(),
  values = (page) => page.locator("#timeline dd").allInnerTexts(),
  sharer = tab;
tab = await context.newPage();
listen();
await tab.goto(permalink);
await until((v) => document.querySelector("#timeline")?.dataset.seen === v, view.join("-"));
await track("Processor", ".pins").waitFor();
assert.equal(
  await tab.locator("#timeline .group-head", { hasText: "main" }).getAttribute("aria-expanded"),
  "false",
);
assert.ok(await tab.getByRole("button", { name: "Axes from zero" }).isVisible());
await range.waitFor({ state: "attached" });
await tab.locator("#timeline .range").waitFor();
// both pages have to learn more of the stretch, and values out of view follow those in view
const same = async () => `${await values(tab)}` === `${await values(sharer)}`;
for (let i = 0; i < 100 && !(await same()); i++) await rest();
assert.deepEqual(await values(tab), await values(sharer), "the values are the same");
assert.ok(
  reading.startsWith(await tab.locator("#timeline .reading").innerText()),
  "so is the moment",
);
ok("a permalink shows the same");

await tab.locator("#timeline .tracks").focus();
const moments = [];
for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) {
  const was = await tab.locator("#timeline .reading").innerText();
  await tab.keyboard.press(key);
  await until((was) => document.querySelector("#timeline .reading").innerText !== was, was);
  moments.push(await tab.locator("#timeline .reading").innerText());
}
assert.ok(
  moments.every((m) => /^at .* · cores /.test(m)) && moments[0] === moments[2],
  `the arrow keys read out the values: ${moments}`,
);
ok("by keyboard, with values read out");

for (const [name, scheme, wide] of [
  ["light", "light", 1280],
  ["dark", "dark", 1280],
  ["narrow", "light", 400],
]) {
  await tab.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await tab.setViewportSize({ width: wide, height: 1000 });
  await rest();
  await timeline().evaluate((e) =>
    scrollTo({ top: e.getBoundingClientRect().top + scrollY - 60, behavior: "instant" }),
  );
  assert.ok(
    (await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
    `${name}: the page is too wide`,
  );
  await tab.evaluate(axe.source);
  const { violations } = await tab.evaluate(() => axe.run("#timeline"));
  assert.deepEqual(
    violations.map((v) => `${v.id}: ${v.nodes[0].html}`),
    [],
    `${name}: axe`,
  );
  await shot(tab, join(folder, `tracks-${name}.png`));
}
ok("no fault of accessibility, light, dark and at 400 pixels");

assert.deepEqual(complaints, [], "the page complains");
await browser.close();
await server.end();
console.log(`${passed} passed, 0 failed`);
