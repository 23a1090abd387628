// Every page, saved as one file as it is shown, in a real Chromium: the file opens from a disk without a network, light, dark and narrow, and has
// the figures of the page, neither others nor fewer.
//   node test/saved.mjs [folder for files and screenshots]        PAGES=list,plan: these alone

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { addressOf, launch, opened, savedFile, screenshots, shown } from "./kit.mjs";
import { pages } from "./pages.mjs";
import { world } from "./world.mjs";

const folder = screenshots("saved"),
  only = process.env.PAGES?.split(","),
  looked = pages.filter((p) => p.at && (!only || only.includes(p.name)));
const w = await world((what) => looked.some((p) => p.of === what)),
  browser = await launch(),
  failed = [],
  left = [];
let passed = 0;

/** The words with a digit of what is shown, in their order, but for those in parts that no file has; and the pictures that are drawn. */
const figures = (tab, without) =>
  tab.evaluate((without) => {
    const copy = document.getElementById("app");
    for (const e of copy.querySelectorAll(without)) e.style.display = "none";
    const said = copy.innerText.split(/\s+/).filter((word) => /\d/.test(word)),
      drawn = [...copy.querySelectorAll("canvas")].filter((c) => c.width && c.height).length;
    for (const e of copy.querySelectorAll(without)) e.style.display = "";
    return { said, drawn };
  }, without);

// what changes by itself, or is there to be clicked
const beside = ".hint.as-it-was, .learn, .as-picture, .saves, .copied, .tip";

/** The figures of a page once nothing more comes: what was asked for is there, and the same as a moment ago. */
async function settled(tab) {
  await tab.waitForLoadState("networkidle", { timeout: 4000 }).catch(() => {}); // a page that listens is never idle
  for (let before = null; ;) {
    const now = await figures(tab, beside);
    if (JSON.stringify(now) === JSON.stringify(before)) return now;
    before = now;
    await tab.waitForTimeout(500);
  }
}

for (const page of looked) {
  if (page.of && !w[page.of]) {
    left.push(page.name);
    continue;
  }
  try {
    await opened(
      browser,
      page.name,
      addressOf(w.server, page.at(w)),
      { downloads: true },
      async (tab) => {
        await tab.locator(page.ready).first().waitFor();
        const live = page.name === "run-live" || page.name === "list",
          want = live ? null : await settled(tab);
        await savedFile(
          browser,
          tab,
          page.name,
          folder,
          async (alone) => {
            const got = await figures(alone, beside);
            if (live) {
              assert.ok(got.said.length > 3, "figures of what is recorded just now");
              const rows = alone.locator("table.runs");
              if (page.name === "list")
                assert.equal(
                  await rows.locator("tr.run").count(),
                  Number(await rows.getAttribute("aria-rowcount")) - 1,
                  "all rows, not those in view alone",
                );
              return;
            }
            // a narrow page leaves columns out, as the page itself does
            if (alone.viewportSize().width < 1000)
              return assert.ok(got.said.every((word) => want.said.includes(word)));
            assert.deepEqual(got, want);
            const pictures = await alone.evaluate(async () => {
              let empty = 0;
              for (const c of document.querySelectorAll("canvas")) {
                const url = /url\("(data:[^"]+)"\)/.exec(c.style.background)?.[1];
                if (!c.width || !c.height) continue;
                const image = new Image();
                image.src = url;
                await image.decode();
                empty += !(image.width > 0);
              }
              return empty;
            });
            assert.equal(pictures, 0, "pictures that are not there");
          },
          "Save as it is shown",
        );
        const text = readFileSync(join(folder, `${page.name}.html`), "utf8");
        assert.doesNotMatch(text, /<script|<iframe|\son[a-z]+="|javascript:/i);
        assert.ok(!text.includes(w.server.token), "a token is in the file");
        assert.ok(!text.includes(w.server.address.host), "the server's address is in the file");
      },
    );
    passed++;
  } catch (e) {
    failed.push(`${page.name}: ${e.message}`);
  }
}
await browser.close();
await w.close();
console.log(
  `${shown(folder)}${failed.map((f) => `FAILED ${f}\n`).join("")}${left.length ? `left out, no Python with torch in HIGHTIDE_TEST_PYTHON: ${left.join(", ")}\n` : ""}${passed} passed, ${failed.length} failed`,
);
process.exitCode = failed.length ? 1 : 0;
