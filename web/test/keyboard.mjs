// The main job of each page with the keyboard alone: no click, and no focus that a script gives. What has the focus shows it, and no action loses it.
//   node test/keyboard.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  addressOf,
  askJSON,
  binary,
  fresh,
  here,
  launch,
  opened,
  screenshots,
  serve,
  shot,
  shown,
} from "./kit.mjs";
import { snapshotFile } from "./world.mjs";

const folder = screenshots("keyboard"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") },
  most = 400;
for (const [name, mib] of [
  ["small", 30],
  ["large", 60],
])
  execFileSync(
    binary,
    [
      "run",
      "--quiet",
      "--name",
      name,
      "--",
      "python3",
      "-c",
      `x = bytearray(${mib} << 20)\nimport time; time.sleep(0.3)`,
    ],
    { env },
  );
const server = await serve(env, [
    snapshotFile,
    here("../../testdata/recording/v1-every-kind.hightide"),
  ]),
  browser = await launch();
const api = (path) => askJSON(server, path);
const snapshot = `/snapshots/${(await api("/snapshots")).snapshots.find((s) => snapshotFile.endsWith(s.name)).id}`;
const ls = (await api("/runs")).runs,
  idOf = (name) => ls.find((r) => r.name === name).id,
  every = ls.find((r) => r.from === "file").id;
let passed = 0;

/** What has the focus, in words, and whether it can be seen there: nothing is told of a page's top, which begins without a ring. */
const at = (tab) =>
  tab.evaluate(() => {
    const e = document.activeElement,
      { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(e),
      box = e.getBoundingClientRect();
    return {
      lost: e === document.body,
      top: e.id === "app",
      name: `${e.tagName.toLowerCase()}.${e.className} ${(e.getAttribute("aria-label") ?? e.textContent ?? "").slice(0, 50)}`,
      ring: (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none",
      seen: box.width > 0 && box.height > 0,
    };
  });
/** The focus is somewhere, and is seen to be there. */
async function held(tab, after) {
  const { lost, top, name, ring, seen } = await at(tab);
  assert.ok(!lost, `${after}: the focus is lost`);
  assert.ok(top || (ring && seen), `${after}: no ring around ${name}`);
}
/** Presses keys one after the other, and looks after each where the focus is. */
async function press(tab, ...keys) {
  for (const key of keys) {
    await tab.keyboard.press(key);
    await held(tab, key);
  }
}
/** Goes on with Tab until something has the focus. Each stop shows that it has it. */
async function reach(tab, selector, { key = "Tab", text = "" } = {}) {
  const stops = [];
  for (let i = 0; i < most; i++) {
    await tab.keyboard.press(key);
    if (
      await tab.evaluate(
        ([selector, text]) =>
          document.activeElement.matches(selector) &&
          document.activeElement.textContent.includes(text),
        [selector, text],
      )
    )
      return held(tab, `Tab to ${selector}`);
    const { lost, top, ring, name } = await at(tab);
    assert.ok(lost || top || ring, `Tab to ${selector}: no ring around ${name}`); // beyond the last stop the browser has the focus
    stops.push(name);
  }
  assert.fail(`Tab does not reach ${selector} ${text}; last were ${stops.slice(-6).join(" | ")}`);
}
/** Tab goes through the page and out of its end, so that no panel keeps it. */
async function throughAll(tab) {
  const seen = new Set();
  for (let i = 0; i < most; i++) {
    await tab.keyboard.press("Tab");
    const { lost, ring, name } = await at(tab),
      again = await tab.evaluate(() => {
        const e = document.activeElement,
          was = e.dataset.stopped;
        e.dataset.stopped = "1";
        return was === "1";
      });
    if (lost || again) {
      assert.ok(
        lost ||
          (await tab.evaluate(
            () => document.activeElement === document.querySelector("[data-stopped]"),
          )),
        `Tab comes back to ${name} before the end of the page`,
      );
      return;
    }
    assert.ok(ring, `Tab: no ring around ${name}`);
    seen.add(name);
  }
  assert.fail(`no end after ${most} stops`);
}
const words = (tab) => new URL(tab.url()).searchParams;
const asked = (tab, key, is = true) =>
  tab.waitForFunction(
    ([key, is]) => new URLSearchParams(location.search).has(key) === is,
    [key, is],
  );
const look = async (name, path, check) => {
  await opened(
    browser,
    name,
    addressOf(server, path),
    { allowed: (text) => /status of 404/.test(text) },
    async (tab) => {
      await check(tab);
      await shot(tab, join(folder, `keyboard-${name}.png`));
    },
  );
  passed++;
};
const only = process.env.ONLY?.split(",");
const page = async (name, path, check) => {
  if (!only || only.includes(name)) await look(name, path, check);
};

await page("runs", "/", async (tab) => {
  await tab.locator("tr.run").nth(2).waitFor();
  await press(tab, "/");
  await tab.keyboard.type("large");
  await tab.locator("tr.run").nth(1).waitFor({ state: "detached" });
  await press(tab, "ArrowDown", "Enter");
  await tab.waitForURL(/\/runs\/\w+$/);
  await tab.locator("#timeline").waitFor();
  await press(tab, "g");
  await tab.locator("tr.run").nth(2).waitFor();
  await reach(tab, "tr.run a.name", { text: "small" });
  await press(tab, "x");
  await tab.locator("tr.run.picked").waitFor();
  await press(tab, "Delete");
  await tab.locator(".toast", { hasText: "1 run deleted" }).waitFor();
  assert.equal(await tab.locator("tr.run").count(), 2);
  await held(tab, "a run is deleted");
  await press(tab, "z");
  await tab.locator("tr.run").nth(2).waitFor();
  await press(tab, "k", "k", "k", "x", "Delete");
  await reach(tab, ".toast .undo"); // its message can be reached too
  await press(tab, "Enter");
  await tab.locator("tr.run").nth(2).waitFor();
  for (const name of ["small", "large"]) {
    for (
      let i = 0;
      i < 3 && (await tab.evaluate(() => document.activeElement.textContent)) !== name;
      i++
    )
      await press(tab, name === "small" ? "k" : "j");
    for (
      let i = 0;
      i < 3 && (await tab.evaluate(() => document.activeElement.textContent)) !== name;
      i++
    )
      await press(tab, name === "small" ? "j" : "k");
    await press(tab, "x");
  }
  assert.equal(await tab.locator("tr.run.picked").count(), 2);
  await throughAll(tab);
  await press(tab, "c");
  await tab.waitForURL(/\/diff\?a=\w+&b=\w+/);
});

await page("run", `/runs/${every}`, async (tab) => {
  await tab.locator("#timeline .track").first().waitFor();
  await reach(tab, "#timeline .tracks");
  await press(tab, "ArrowRight", "ArrowLeft");
  await asked(tab, "at");
  await press(tab, "l"); // the phase at the moment, as its lane has it
  await asked(tab, "phase");
  await press(tab, "l");
  await asked(tab, "phase", false);
  await press(tab, "Shift+ArrowRight", "Shift+ArrowRight");
  await asked(tab, "range");
  await press(tab, "Escape");
  await asked(tab, "range", false);
  await press(tab, "Escape");
  await asked(tab, "at", false);
  await press(tab, "z");
  await asked(tab, "at");
  await reach(tab, "#app table tbody .pick"); // the row of a table
  await press(tab, "Enter");
  await tab.waitForFunction(() => document.activeElement.getAttribute("aria-pressed") === "true");
  await press(tab, "Enter");
  await tab.waitForFunction(() => document.activeElement.getAttribute("aria-pressed") === "false");
  await press(tab, "Enter");
  await reach(tab, ".chosen .chip:not(:first-child)"); // the chip of the row takes it away, the moment stays
  await press(tab, "Enter");
  await held(tab, "a chip is taken away");
  assert.match((await at(tab)).name, /moment/, "the next chip has the focus");
  await press(tab, "Enter");
  await asked(tab, "at", false);
  await held(tab, "the last chip is taken away");
  await throughAll(tab);
});

await page("explorer", snapshot, async (tab) => {
  await tab.locator("#explorer .explorer[data-tile][data-moment]").waitFor();
  await reach(tab, ".stacked canvas");
  await press(tab, "p", "ArrowLeft");
  await asked(tab, "at");
  const there = words(tab).get("at");
  await press(tab, "ArrowRight");
  await tab.waitForFunction((was) => new URLSearchParams(location.search).get("at") !== was, there);
  await press(tab, "c");
  await asked(tab, "colour");
  // from block to block of the moment: what is said is what Enter selects, and what the server has there
  const said = tab.locator(".stacked [role=status]"),
    number = async () =>
      (await said.textContent())
        .match(/Block ([\d,]+), ([\d,]+) of/)
        .slice(1)
        .map((n) => Number(n.replaceAll(",", "")));
  await press(tab, "Home");
  const [lowest, place] = await number();
  assert.equal(place, 1);
  await press(tab, "ArrowUp", "ArrowUp", "ArrowDown");
  const [second, next] = await number();
  assert.ok(second !== lowest && next === 2, `block ${second} at ${next}`);
  await tab.locator(".float:visible").waitFor();
  await press(tab, "Enter");
  await tab.waitForFunction(
    (n) => new URLSearchParams(location.search).get("block") === n,
    String(second),
  );
  const there2 = words(tab).get("at"),
    block = await api(`${snapshot}/block?n=${second}&at=${there2}`);
  assert.ok(
    block.begin <= there2 && (block.gone < 0 || block.gone > there2),
    `block ${second} is there from ${block.begin} to ${block.gone}, not at ${there2}`,
  );
  await shot(tab, join(folder, "keyboard-explorer-block.png"));
  await press(tab, "w", "w", "a");
  await asked(tab, "t");
  await press(tab, "W");
  await asked(tab, "y");
  const from = Number(words(tab).get("t").split("-")[0]);
  await press(tab, "a", "a", "a", "a", "a");
  await tab.waitForFunction(
    (from) => Number(new URLSearchParams(location.search).get("t")?.split("-")[0]) < from,
    from,
  );
  await press(tab, "a", "ArrowRight"); // the moment is out of view: it comes back into it, also while the hand still pans
  await tab.waitForFunction(() => {
    const w = new URLSearchParams(location.search),
      [from, to] = (w.get("t") ?? "0-0").split("-").map(Number),
      at = Number(w.get("at"));
    return from <= at && at < to;
  });
  await press(tab, "f", "Escape");
  await asked(tab, "t", false);
  await asked(tab, "block", false);
  await reach(tab, ".event-rows");
  for (let i = 0; i < 20 && !words(tab).has("block"); i++)
    await press(tab, "Enter", ...(words(tab).has("block") ? [] : ["ArrowDown"]));
  await asked(tab, "block");
  await press(tab, "Escape");
  await asked(tab, "block", false);
  await press(tab, "/");
  await tab.keyboard.type("linear");
  await asked(tab, "q");
  await reach(tab, "a[href*='/whatif']", { key: "Shift+Tab" });
  await press(tab, "Enter");
  await tab.waitForURL(/\/whatif/);
});

await page("what-if", `${snapshot}/whatif`, async (tab) => {
  await tab.locator("#whatif .said:not(:empty)").waitFor();
  await reach(tab, "#knob-expandable_segments");
  await press(tab, "Space");
  await tab.locator("#whatif .command", { hasText: "expandable_segments:True" }).waitFor();
  await asked(tab, "settings");
  await reach(tab, "#whatif .command", { key: "Shift+Tab" });
  await press(tab, "Enter");
  await tab.locator("#whatif .command .copied:not(:empty)").waitFor();
  await held(tab, "the line is copied");
  await throughAll(tab);
});

await page("compare", `/diff?a=${idOf("small")}&b=${idOf("large")}`, async (tab) => {
  await tab.locator("#bothcourses .both svg").waitFor();
  await reach(tab, "#bothcourses .both");
  await press(tab, "End", "ArrowLeft", "ArrowRight");
  await asked(tab, "at");
  await press(tab, "Shift+ArrowLeft");
  await asked(tab, "range");
  await press(tab, "Escape");
  await asked(tab, "at", false);
  await press(tab, "s");
  await tab.locator("#difference h2", { hasText: "large → small" }).waitFor();
  await held(tab, "the two are swapped");
  await throughAll(tab);
});

await page("palette", "/jobs", async (tab) => {
  await tab.locator("h1").waitFor();
  await reach(tab, ".bar a", { text: "Snapshots" });
  await press(tab, "Control+k", "Escape");
  await press(tab, "Control+k");
  await tab.keyboard.type("snaps");
  await press(tab, "Enter");
  await tab.waitForURL(/\/snapshots$/);
  await held(tab, "a page of the palette");
  await press(tab, "?", "Escape");
});

await browser.close();
await server.end();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
