// What if, of a run that ran out of memory, in a real Chromium on the real server: the verdict, the search, and where things lie.
//   node test/whatif.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { join } from "node:path";
import {
  addressOf,
  ask,
  askJSON,
  fresh,
  here,
  launch,
  opened,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const folder = screenshots("whatif"),
  env = { ...process.env, HIGHTIDE_DATA: fresh("data") };
const server = await serve(env, [here("../../testdata/imagined/oom-a10-pieces.pickle")]),
  { id } = (await askJSON(server, "/snapshots")).snapshots[0],
  page = addressOf(server, `/snapshots/${id}/whatif`);
const whatIf = async (body) =>
  (
    await ask(server, `/api/v1/snapshots/${id}/whatif`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    })
  ).json();
const browser = await launch();
let passed = 0;
const look = async (name, options, check) => {
  await opened(browser, name, page, options, async (tab) => {
    await tab.locator("#whatif .verdict-line b").waitFor();
    await check(tab);
    await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  });
  passed++;
};
const verdict = (tab, outcome) => tab.locator(`#whatif .verdict-line[data-outcome="${outcome}"]`);

// the verdict is the first thing said, and it is the API's
await look("verdict", {}, async (tab) => {
  await verdict(tab, "out of memory").waitFor();
  assert.equal(
    await tab.locator("#whatif .answer-part > :first-child").innerText(),
    (await whatIf({})).verdict.text,
  );
  const on = tab.getByRole("switch", { name: "Expandable segments" });
  await on.check();
  await verdict(tab, "avoided").waitFor();
  assert.match(
    await verdict(tab, "avoided").innerText(),
    /^Out of memory at event 100 is avoided, 796 MiB to spare\./,
  );
  await tab.locator("#knob-memory").fill("20GiB");
  await tab.keyboard.press("Enter");
  await verdict(tab, "out of memory").waitFor();
  assert.match(
    await verdict(tab, "out of memory").innerText(),
    /^Still out of memory at event 100 of 179/,
  );
  await on.uncheck();
  assert.deepEqual(await violations(tab), []);
});

/** Whether two boxes lie over each other. */
const over = (a, b) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

for (const width of [1024, 1280, 1440])
  await look(`search-${width}`, { width }, async (tab) => {
    await tab.getByRole("button", { name: "Search the best settings" }).click();
    await tab.locator(".found button").first().waitFor();
    const names = await tab.locator(".found code").allTextContents();
    assert.equal(names[0], "expandable_segments:True");
    assert.equal(new Set(names).size, names.length, "each once");
    await tab
      .locator("#whatif .knobs .hint", {
        hasText: /The best: Out of memory at event 100 is avoided/,
      })
      .waitFor();
    const curves = await tab.locator("#whatif .u-over").boundingBox(),
      maps = await tab.locator("#whatif .tapes").boundingBox();
    for (const part of await tab
      .locator("#whatif .knobs, #whatif .found button, #whatif .found code, #whatif .knob")
      .all()) {
      const box = await part.boundingBox();
      assert.ok(
        box && !over(box, curves) && !over(box, maps),
        `the form lies over a picture: ${JSON.stringify([box, curves, maps])}`,
      );
    }
  });

await look("phone", { width: 400, scheme: "dark" }, async (tab) => {
  const top = async (selector) => (await tab.locator(selector).first().boundingBox()).y;
  const first = await top("#whatif .knob input"),
    answers = await Promise.all(
      ["#whatif .verdict-line", "#whatif .said", "#whatif .figures", "#whatif .u-over"].map(top),
    );
  assert.ok(
    answers.every((y) => y < first),
    `results at ${answers}, the first of the form at ${first}`,
  );
  await tab.getByRole("switch", { name: "Expandable segments" }).check(); // the verdict stays in view
  await verdict(tab, "avoided").waitFor();
  const box = await verdict(tab, "avoided").boundingBox(),
    bar = await tab.locator(".bar").boundingBox();
  assert.ok(
    box.y >= bar.y + bar.height - 1 && box.y + box.height < 900,
    `the verdict is at ${JSON.stringify(box)}`,
  );
});

await browser.close();
await server.end();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
