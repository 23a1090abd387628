// node bench/timelines.mjs ADDRESS TOKEN RUN SECONDS REPORT: what the timelines of a live run draw in so many seconds and what the page's
// heap gains in twice as many, and how long a frame of the hour of eight ranks takes (the page REPORT, a file) while the wheel zooms.

import { createRequire } from "node:module";
import { letIn } from "../web/test/kit.mjs";
import { hour } from "../web/test/reports.mjs";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const { chromium } = createRequire(
  new URL("../web/package.json", import.meta.url),
)("playwright-core");
const [address, token, run, seconds, report] = [
  process.argv[2],
  process.argv[3],
  process.argv[4],
  Number(process.argv[5]),
  process.argv[6],
];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
  ],
});
const context = await browser.newContext({
  viewport: { width: 1280, height: 1000 },
});
await letIn(context, { address: new URL(address), token });
const tab = await context.newPage();
await tab.goto(new URL(`/runs/${run}`, address).href);
await tab.locator("#timeline .track").first().waitFor();
await tab.locator("#timeline").scrollIntoViewIfNeeded();
const live = await tab.evaluate(
  (seconds) =>
    new Promise((done) => {
      // a state is what the tracks were drawn up to: a frame without news is none
      const of = document.querySelector("#timeline"),
        ends = [],
        begun = performance.now();
      const watch = new MutationObserver(() => {
        if (of.dataset.end !== ends.at(-1)) ends.push(of.dataset.end);
      });
      watch.observe(of, { attributes: true, attributeFilter: ["data-end"] });
      setTimeout(() => {
        watch.disconnect();
        done({
          states: new Set(ends).size,
          ms: performance.now() - begun,
          recorded_ns: Number(ends.at(-1)) - Number(ends[0]),
          tracks: document.querySelectorAll("#timeline .track").length,
        });
      }, seconds * 1000);
    }),
  seconds,
);

// What is in use once garbage is collected: objects of the script, and elements and listeners, which the browser counts apart.
const tools = await tab.context().newCDPSession(tab);
const inUse = async () => {
  for (let n = 0; n < 2; n++) await tools.send("HeapProfiler.collectGarbage"); // what the first frees can free more
  const { usedSize, embedderHeapUsedSize } = await tools.send(
    "Runtime.getHeapUsage",
  );
  return { at: performance.now(), bytes: usedSize + embedderHeapUsedSize };
};
await tools.send("HeapProfiler.enable");
const early = await inUse();
await new Promise((done) => setTimeout(done, 2000 * seconds));
const late = await inUse();
const memory = { early: early.bytes, late: late.bytes, ms: late.at - early.at };
await tools.detach();

// The page is filled with the hour as the program fills it.
const slot = 'id="hightide-report"><';
writeFileSync(
  report,
  readFileSync(
    new URL("../web/dist/report.html", import.meta.url),
    "utf8",
  ).replace(
    slot,
    `${slot.slice(0, -1)}${gzipSync(JSON.stringify(hour)).toString("base64")}<`,
  ),
);
await tab.goto(`file://${report}`);
await tab.locator("#timeline .track").first().waitFor();
for (
  const folded = tab.locator("#timeline .group-head[aria-expanded=false]");
  await folded.count();
)
  await folded.first().click();
await tab.locator("#timeline").scrollIntoViewIfNeeded();
const zoom = await tab.evaluate(
  () =>
    new Promise((done) => {
      const plot = [...document.querySelectorAll("#timeline .plot")].find(
          (p) => p.getBoundingClientRect().top > 200,
        ),
        box = plot.getBoundingClientRect(),
        frames = [],
        of = document.querySelector("#timeline");
      let before = 0,
        n = 0;
      const states = new Set();
      const turn = (now) => {
        if (before) frames.push(now - before);
        before = now;
        states.add(of.dataset.seen);
        if (++n > 120)
          return done({
            frames,
            states: states.size,
            tracks: document.querySelectorAll("#timeline .track").length,
          });
        plot.dispatchEvent(
          new WheelEvent("wheel", {
            deltaY: n % 40 < 20 ? -60 : 60,
            clientX: box.left + box.width / 3,
            clientY: box.top + 5,
            bubbles: true,
            cancelable: true,
          }),
        );
        requestAnimationFrame(turn);
      };
      setTimeout(() => requestAnimationFrame(turn), 400); // the page was scrolled: the wheel would be the page's
    }),
);
console.log(
  JSON.stringify({ live, memory, zoom, bytes: readFileSync(report).length }),
);
await browser.close();
