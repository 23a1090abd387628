// The contents of a page, what it is shared as, and the way from an out-of-memory to what avoids it, in a real Chromium on the real server.
//   node test/contents.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
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
  violations,
} from "./kit.mjs";

const folder = screenshots("contents"),
  data = fresh("data"),
  env = { ...process.env, HIGHTIDE_DATA: data };
execFileSync(
  binary,
  [
    "run",
    "--quiet",
    "--name",
    "tall tide",
    "--",
    "python3",
    "-c",
    "x = bytearray(60 << 20)\nimport time; time.sleep(1.2)",
  ],
  { env },
);
const report = join(data, "explained.html"),
  oom = here("../../testdata/imagined/oom-a10-pieces.pickle");
execFileSync(binary, ["explain", oom, "--html", report], { env });
const server = await serve(env, [oom]),
  { id } = (await askJSON(server, "/snapshots")).snapshots[0],
  run = (await askJSON(server, "/runs")).runs[0].id,
  browser = await launch();
let passed = 0;
const look = async (name, path, options, check) => {
  await opened(
    browser,
    name,
    path.startsWith("file:") ? path : addressOf(server, path),
    options,
    async (tab, context) => {
      await check(tab, context);
      await shot(tab, join(folder, `${name}.png`));
    },
  );
  if (process.env.DBG) console.log(name);
  passed++;
};
const current = (tab) => tab.locator(".contents a[aria-current]");

for (const [name, path] of [
  ["run", `/runs/${run}`],
  ["snapshot", `/snapshots/${id}`],
  ["report", `file://${report}`],
])
  for (const width of [400, 1024, 1440])
    await look(
      `${name}-${width}`,
      path,
      { width, scheme: width === 1024 ? "dark" : "light" },
      async (tab) => {
        await tab.locator("#notes, #findings").first().waitFor();
        const links = tab.locator(".contents a");
        await links.nth(3).waitFor();
        // every section is there, once; tables are one
        const wanted = await tab.evaluate(() => {
          const ids = [...document.querySelectorAll("main section[id]")]
              .filter((s) => !s.parentElement.closest("section") && s.checkVisibility())
              .map((s) => s.id),
            first = ids.find((i) => i.startsWith("table-"));
          return ids.filter((i) => !i.startsWith("table-") || i === first);
        });
        await tab.waitForFunction(
          (n) => document.querySelectorAll(".contents a").length === n,
          wanted.length,
        );
        assert.deepEqual(
          await links.evaluateAll((all) => all.map((a) => a.getAttribute("href").slice(1))),
          wanted,
        );
        for (const box of await links.evaluateAll((all) =>
          all.map((a) => a.getBoundingClientRect().height),
        ))
          assert.ok(box >= 24, `a link ${box} pixels tall`);
        // by keyboard and by click to a section, which is then the current one and not below the bar
        await tab.keyboard.press("}");
        await current(tab).waitFor();
        const last = links.nth(Math.floor(wanted.length / 2)),
          to = await last.getAttribute("href");
        await last.click();
        await tab.waitForFunction((to) => {
          const s = document.querySelector(to),
            { top } = s.getBoundingClientRect(),
            at = document.querySelector(".contents").getBoundingClientRect().bottom;
          return (
            top >= at - 1 &&
            (top < at + 60 || scrollY + innerHeight >= document.documentElement.scrollHeight - 2) &&
            document.querySelector(".contents a[aria-current]")
          );
        }, to);
        assert.ok(
          await tab.evaluate(
            (to) => document.querySelector(to).contains(document.activeElement),
            to,
          ),
          "the keyboard goes on from there",
        );
        const bar = await tab.locator(".contents").boundingBox();
        assert.ok(bar.y >= 0 && bar.y < 120, "it stays in view");
        if (width !== 1440) assert.deepEqual(await violations(tab), []);
      },
    );

await look("list", "/", {}, async (tab) => {
  await tab.locator("tr.run").first().waitFor();
  assert.ok(await tab.locator(".contents").isHidden(), "a list has no contents");
  await tab.locator(".bar .share").click();
  assert.ok(await tab.getByRole("button", { name: "Save as one HTML file" }).isEnabled());
});

for (const [path, name, says] of [
  [`/runs/${run}`, "report.html", /tall tide/],
  [`/snapshots/${id}`, "snapshot.html", /oom-a10-pieces/],
])
  await look(`share-${name}`, path, { downloads: true }, async (tab, context) => {
    await tab.locator("h1").first().waitFor();
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await tab.locator(".bar .share").click();
    assert.deepEqual(await violations(tab), []);
    await tab.getByRole("button", { name: "Copy the link" }).click();
    await tab.locator(".toast", { hasText: "is copied" }).waitFor();
    assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), tab.url());
    await tab.locator(".bar .share").click();
    const [file] = await Promise.all([
        tab.waitForEvent("download"),
        tab.getByRole("button", { name: "Save as one HTML file" }).click(),
      ]),
      saved = join(data, name);
    await file.saveAs(saved);
    assert.equal(file.suggestedFilename(), name);
    assert.match(readFileSync(saved, "utf8"), /hightide-report/);
    const other = await context.newPage(); // it opens without a server
    await other.goto(`file://${saved}`);
    await other.locator("h1").waitFor();
    assert.match(await other.locator(".top").innerText(), says);
    await other.close();
  });

// what avoids an out-of-memory is in view at once, and said once; the course of the memory and the segments are drawn once
for (const width of [400, 1024, 1440])
  await look(`oom-${width}`, `/snapshots/${id}`, { width }, async (tab) => {
    const fix = await tab.locator(".remedy").boundingBox(),
      way = tab.getByRole("link", { name: "What would avoid it?" });
    assert.ok(fix.y + fix.height < 900, `the fix ends at ${fix.y + fix.height}`);
    assert.match(await tab.locator(".remedy").innerText(), /expandable_segments:True/);
    assert.equal(await tab.locator("#findings .advice").count(), 0);
    assert.equal(await tab.locator("#course, canvas.tape, [id^='table-reserved']").count(), 0);
    assert.match(await tab.locator("#segments").innerText(), /asked for[\s\S]*19.6 GiB/);
    await way.click();
    await tab.locator("#whatif .verdict-line[data-outcome='out of memory']").waitFor();
  });

await browser.close();
await server.end();
console.log(`${shown(folder)}${passed} passed, 0 failed`);
