// node bench/whatif.mjs ADDRESS TOKEN TIMES: moves the sliders of the what-if page and measures from each release to the frame with its answer.

import { createRequire } from "node:module";
import { askJSON, letIn } from "../web/test/kit.mjs";

const { chromium } = createRequire(
  new URL("../web/package.json", import.meta.url),
)("playwright-core");
const [address, token, times] = [
    process.argv[2],
    process.argv[3],
    Number(process.argv[4]),
  ],
  server = { address: new URL(address), token };
const { snapshots } = await askJSON(server, "/snapshots");
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
  viewport: { width: 1280, height: 900 },
});
await letIn(context, server);
const tab = await context.newPage();
const answer_ms = [],
  answer_bytes = [],
  release_ms = [];
tab.on("response", async (r) => {
  if (!r.url().endsWith("/whatif") || r.request().method() !== "POST") return;
  const timing = r.request().timing();
  answer_bytes.push(
    Number(r.headers()["content-length"] ?? 0) ||
      (await r.body().catch(() => "")).length,
  );
  if (timing.responseEnd > 0) answer_ms.push(timing.responseEnd);
});
await tab.goto(new URL(`/snapshots/${snapshots[0].id}/whatif`, address).href);
await tab.locator("#whatif .said:not(:empty)").waitFor();
const knobs = [
  "max_split_size_mb",
  "roundup_power2_divisions",
  "max_non_split_rounding_mb",
];
for (let i = 0; i < times; i++) {
  release_ms.push(
    await tab.evaluate(
      async ({ id, at }) => {
        const slider = document.getElementById(id),
          to =
            Number(slider.value) === at % (Number(slider.max) + 1)
              ? (at + 1) % (Number(slider.max) + 1)
              : at % (Number(slider.max) + 1);
        const wanted = new Promise((done) => {
          // the panel writes its facts anew with each answer
          const facts = document.querySelector("#whatif .figures"),
            watch = new MutationObserver(() => {
              watch.disconnect();
              requestAnimationFrame(() => done(performance.now()));
            });
          watch.observe(facts, { childList: true });
        });
        slider.value = String(to);
        const from = performance.now();
        slider.dispatchEvent(new Event("change", { bubbles: true }));
        return (await wanted) - from;
      },
      {
        id: `knob-${knobs[i % knobs.length]}`,
        at: 1 + Math.floor(i / knobs.length),
      },
    ),
  );
}
await browser.close();
process.stdout.write(
  JSON.stringify({
    events: snapshots[0].devices[0].events,
    release_ms,
    answer_ms,
    answer_bytes,
  }),
);
