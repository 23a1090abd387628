// Every page with real data: accessible (axe), 1280 and 400 pixels wide, light and dark, without complaint, each panel with its lesson. Nothing
// moves by itself while a page loads and while new data arrives.
//   node test/walk.mjs [folder for screenshots]        PAGES=run,list: these alone

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  addressOf,
  focused,
  launch,
  layoutShift,
  opened,
  screenshots,
  shot,
  shown,
  sound,
  violations,
  watchShifts,
} from "./kit.mjs";
import { pages } from "./pages.mjs";
import { world } from "./world.mjs";

const folder = screenshots("walk"),
  only = process.env.PAGES?.split(","),
  looked = pages.filter((p) => !only || only.includes(p.name));
const w = await world((what) => looked.some((p) => p.of === what)),
  browser = await launch();
const views = [
    ["light", 1280],
    ["light", 400],
    ["dark", 400],
    ["dark", 1280],
  ],
  failed = [],
  left = [];
const calm = 0.02; // of layout shift: a fifth of what web.dev calls good
let passed = 0;

/** Pictures are drawn, and nothing that was asked for is still to come. */
const drawn = (tab) =>
  tab.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))),
      ),
  );
/** What was asked for has come; of what is recorded just now, a second of it. */
const loaded = async (tab) => {
  await tab.waitForLoadState("networkidle", { timeout: 4000 }).catch(() => {}); // a live page is never idle
  const rows = tab.locator("#output .reading"),
    before =
      (await rows.count()) && (await tab.locator(".live-state .live").count())
        ? Number.parseInt((await rows.innerText()).replaceAll(",", ""))
        : NaN;
  if (before)
    await tab.waitForFunction(
      (least) =>
        Number.parseInt(
          document.querySelector("#output .reading").textContent.replaceAll(",", ""),
        ) >= least,
      before + 10,
    );
  await drawn(tab);
};
const tried = async (name, check) => {
  try {
    await check();
    passed++;
  } catch (e) {
    failed.push(
      `${name}: ${e.message.replace(/\+ actual - expected\s+/, "").replace(/\n\s*/g, "\n    ")}`,
    );
  }
};

try {
  for (const page of looked) {
    if (page.of && !w[page.of]) {
      left.push(page.name);
      continue;
    }
    const address = page.file ? pathToFileURL(page.file(w)).href : addressOf(w.server, page.at(w));
    for (const [, width] of views.slice(0, 2))
      await tried(`${page.name}, ${width}: it stays in its place`, () =>
        opened(browser, page.name, address, { width, before: watchShifts }, async (tab) => {
          await tab.locator(page.ready).first().waitFor();
          await loaded(tab);
          const { score, moved } = await layoutShift(tab);
          console.log(`${page.name}, ${width}: layout shift ${score.toFixed(4)}`);
          assert.ok(score <= calm, `layout shift ${score.toFixed(4)}\n${moved.join("\n")}`);
        }),
      );
    await tried(page.name, () =>
      opened(browser, page.name, address, {}, async (tab) => {
        await tab.locator(page.ready).first().waitFor();
        for (const [scheme, width] of views) {
          await tab.emulateMedia({ colorScheme: scheme });
          await tab.setViewportSize({ width, height: 900 });
          await tab.waitForFunction(
            (scheme) => document.documentElement.dataset.theme === scheme,
            scheme,
          );
          await drawn(tab);
          await shot(tab, join(folder, `${page.name}-${scheme}-${width}.png`), { fullPage: true });
          await tried(`${page.name}, ${scheme}, ${width}`, async () => {
            await sound(tab, "it");
            assert.deepEqual(await violations(tab), [], "axe");
          });
        }
        await tried(`${page.name}: each panel has its lesson`, async () => {
          const without = await tab.evaluate(() =>
            [...document.querySelectorAll("section[id]")]
              .filter((s) => s.checkVisibility() && !s.querySelector("button.learn"))
              .map((s) => s.id),
          );
          assert.deepEqual(without, [], "panels without a lesson in lib/learn.ts");
          if (!(await tab.locator("button.learn").count())) return;
          await tab.mouse.move(0, 0);
          await tab.keyboard.press("i");
          await focused(tab, ".lesson");
          assert.match(await tab.locator(".lesson").innerText(), /Good[\s\S]+Bad/);
          assert.deepEqual(await violations(tab), [], "axe with a lesson open");
          await tab.keyboard.press("Escape");
          await focused(tab, "button.learn");
        });
      }),
    );
  }
} finally {
  await browser.close();
  await w.close();
}
console.log(
  `${shown(folder)}${failed.map((f) => `FAILED ${f}\n`).join("")}${left.length ? `left out, no Python with torch in HIGHTIDE_TEST_PYTHON: ${left.join(", ")}\n` : ""}${passed} passed, ${failed.length} failed`,
);
process.exitCode = failed.length ? 1 : 0;
