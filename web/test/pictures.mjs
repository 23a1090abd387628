// The pictures of the live pages in README.md and docs/ui.md: real recordings, made anew, as they are seen at 1280 pixels.
//   make pictures           WORLD=FOLDER: of recordings that web/test/walk.mjs made before

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { addressOf, here, launch, python } from "./kit.mjs";
import { world } from "./world.mjs";

const folder = here("../../docs/images");
const pictures = [
  { name: "ui-run", at: (w) => `/runs/${w.run}`, ready: "#timeline canvas", from: "#timeline", height: 820 },
  { name: "ui-explorer", at: (w) => `/snapshots/${w.snapshot}?at=10000&block=1024`, ready: "#explorer aside h3", from: "#explorer", height: 820 },
  { name: "ui-what-if", at: (w) => `/snapshots/${w.snapshot}/whatif?settings=expandable_segments:True`, ready: "#whatif .said:not(:empty)", height: 820 },
];
if (!python) throw new Error("HIGHTIDE_TEST_PYTHON names no Python with torch");
const w = await world(() => false), browser = await launch(), made = [];
try {
  for (const { name, at, ready, from, height } of pictures) {
    const context = await browser.newContext({ viewport: { width: 1280, height }, colorScheme: "light" }), tab = await context.newPage();
    await tab.goto(addressOf(w.server, at(w)));
    await tab.locator(ready).first().waitFor();
    await tab.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {}); // a live page is never idle
    if (from) await tab.locator(from).evaluate((e) => scrollTo({ top: e.getBoundingClientRect().top + scrollY - 60, behavior: "instant" }));
    await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 400))));
    made.push(join(folder, `${name}.png`));
    await tab.screenshot({ path: made.at(-1) });
    await context.close();
  }
} finally {
  await browser.close();
  await w.close();
}
// 128 colours are enough for flat areas and text, and take a third of the bytes
execFileSync(python, ["-c", "import sys\nfrom PIL import Image\nfor f in sys.argv[1:]: Image.open(f).convert('RGB').quantize(128, dither=Image.Dither.NONE).save(f, optimize=True)", ...made]);
console.log(made.join("\n"));
