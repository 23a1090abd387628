// The pictures of the pages in README.md and docs/ui.md: real recordings, made anew, live at 1280 pixels and as one file at 1200.
//   make pictures           RECORDED=FOLDER: of what was recorded there before; of a new folder there, it is kept
//                           TRAINING=FOLDER: where the programs lie, as their paths are in the pictures

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { addressOf, askJSON, binary, fresh, here, launch, python, serve } from "./kit.mjs";
import { snapshotFile } from "./world.mjs";

if (!python) throw new Error("HIGHTIDE_TEST_PYTHON names no Python with torch");
const folder = here("../../docs/images"),
  data = process.env.RECORDED ?? fresh("pictures"),
  training = process.env.TRAINING ?? fresh("training");
const env = { ...process.env, HIGHTIDE_DATA: data, PATH: `${dirname(python)}:${process.env.PATH}` };
const hightide = (...words) =>
  execFileSync(binary, words, { env, cwd: training, encoding: "utf8" });

const matrix = `axes:
  model: [lenet, resnet18]
  batch: [16, 32, 64]
  mode: [train, inference]
  device: [cpu]
labels:
  model: {lenet: LeNet, resnet18: ResNet-18}
repeats: {least: 2, most: 3, figure: rss, within: 3%}
warmup: 1
steps: 2
`;

/** Two trainings, of which one leaks, a transformer of two widths on an imaginary GPU, and a small matrix. */
function record() {
  mkdirSync(data, { recursive: true });
  mkdirSync(training, { recursive: true });
  for (const file of ["gpt.py", "digits.py", "digits_leak.py"])
    cpSync(here(`../../examples/${file}`), join(training, file));
  writeFileSync(join(training, "matrix.yaml"), matrix);
  for (const width of [256, 512])
    hightide(
      "imagine",
      "--quiet",
      "--no-suggest",
      "--gpu",
      "a10",
      "--name",
      `gpt-w${width}`,
      "--tag",
      `width=${width}`,
      "--",
      "python",
      "gpt.py",
      "--layers",
      "4",
      "--width",
      String(width),
      "--length",
      "256",
    );
  hightide(
    "run",
    "--quiet",
    "--name",
    "digits",
    "--stacks",
    "--steps",
    "40",
    "--",
    "python",
    "digits.py",
  );
  hightide(
    "run",
    "--quiet",
    "--name",
    "digits-leak",
    "--stacks",
    "--steps",
    "40",
    "--",
    "python",
    "digits_leak.py",
  );
  hightide("bench", "matrix.yaml", "--name", "models");
  hightide("run", "--quiet", "--name", "demo", "--", "python", "digits_leak.py");
}

if (!existsSync(join(data, "runs"))) record();
const { runs } = JSON.parse(hightide("ls", "--json")),
  named = (name) => runs.find((r) => r.name === name).id;
const server = await serve(env, [snapshotFile]),
  { snapshots } = await askJSON(server, "/snapshots");
const snapshot = `/snapshots/${snapshots.find((s) => snapshotFile.endsWith(s.name)).id}`;
const files = fresh("pages"),
  page = (name, ...words) => {
    const file = join(files, `${name}.html`);
    hightide(...words, "--html", file);
    return pathToFileURL(file).href;
  };
const pictures = [
  {
    name: "report",
    at: page("report", "report", "demo"),
    ready: "#timeline canvas",
    width: 1200,
    height: 1500,
  },
  {
    name: "explain",
    at: page("explain", "explain", snapshotFile),
    ready: "#course canvas",
    width: 1200,
    height: 1690,
  },
  {
    name: "ui-run",
    at: `/runs/${named("digits-leak")}`,
    ready: "#timeline canvas",
    from: "#timeline",
    height: 820,
  },
  {
    name: "ui-explorer",
    at: `${snapshot}?at=10000&block=1024`,
    ready: "#explorer aside h3",
    from: "#explorer",
    height: 820,
  },
  {
    name: "ui-what-if",
    at: `${snapshot}/whatif?settings=expandable_segments:True`,
    ready: "#whatif .said:not(:empty)",
    height: 820,
  },
  {
    name: "ui-compare",
    at: `/diff?a=${named("gpt-w256")}&b=${named("gpt-w512")}`,
    ready: "#difference svg",
    height: 760,
  },
  { name: "ui-matrix", at: "/matrices/models", ready: "#bars .mark", height: 820 },
];
const browser = await launch(),
  made = [];
try {
  for (const { name, at, ready, from, width = 1280, height } of pictures) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: "light" }),
      tab = await context.newPage();
    await tab.goto(at.startsWith("/") ? addressOf(server, at) : at);
    await tab.locator(ready).first().waitFor();
    await tab.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {}); // a live page is never idle
    if (from)
      await tab
        .locator(from)
        .evaluate((e) => e.scrollIntoView({ block: "start", behavior: "instant" }));
    await tab.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 400))),
    );
    made.push(join(folder, `${name}.png`));
    await tab.screenshot({ path: made.at(-1) });
    await context.close();
  }
} finally {
  await browser.close();
  await server.end();
}
// 128 colours are enough for flat areas and text, and take a third of the bytes
execFileSync(python, [
  "-c",
  "import sys\nfrom PIL import Image\nfor f in sys.argv[1:]: Image.open(f).convert('RGB').quantize(128, dither=Image.Dither.NONE).save(f, optimize=True)",
  ...made,
]);
console.log(made.join("\n"));
