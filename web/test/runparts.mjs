// The parts of a run's page: terminal output, ranks, tables. In a real Chromium, on the real server, with real runs.
//   node test/runparts.mjs [folder for screenshots]

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  addressOf,
  ask,
  begin,
  binary,
  fresh,
  here,
  launch,
  screenshots,
  serve,
  shot,
} from "./kit.mjs";

const folder = screenshots("runparts"),
  data = fresh("data");
const env = { ...process.env, HIGHTIDE_DATA: data, TERM: "xterm-256color" };
const server = await serve(env),
  address = addressOf(server, "/");
const browser = await launch();
const context = await browser.newContext({
  viewport: { width: 1280, height: 900 },
  permissions: ["clipboard-read", "clipboard-write"],
});
const tab = await context.newPage(),
  complaints = [],
  outside = [];
tab.on(
  "console",
  (m) =>
    ["error", "warning"].includes(m.type()) && !/404/.test(m.text()) && complaints.push(m.text()),
);
tab.on("pageerror", (e) => complaints.push(e.message));
tab.on("request", (r) => {
  const { origin, protocol } = new URL(r.url());
  if (origin !== new URL(address).origin && protocol !== "blob:" && protocol !== "data:")
    outside.push(r.url());
});
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const base = address.split("?")[0].replace(/\/$/, "");
let passed = 0;
const ok = (said) => {
  passed++;
  if (process.env.VERBOSE) console.log(said);
};
async function accessible(what, panel) {
  await tab.evaluate(axe);
  const found = await tab.evaluate(
    (panel) =>
      window.axe.run(panel, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
      }),
    panel,
  );
  assert.deepEqual(
    found.violations.map(
      (v) =>
        `${v.id}: ${v.nodes
          .slice(0, 3)
          .map((n) => n.target.join(" "))
          .join(" | ")}`,
    ),
    [],
    `${what} is not accessible`,
  );
}
const narrow = async () => {
  assert.ok(
    (await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
    "the page is too wide",
  );
};
const row = (n) => tab.locator(`.term-row:has([data-row="${n - 1}"]) .term-text`);
const id = (name) =>
  JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.find(
    (r) => r.name === name,
  ).id;
const term = tab.locator(".term");

// A program that writes as tqdm and rich do, in colours, and waits for a word before it goes on.
const go = join(data, "go"),
  program = join(data, "prints.py");
writeFileSync(
  program,
  `
import os, sys, time
w = lambda s: (sys.stdout.write(s), sys.stdout.flush())
for name, code in [("red", 31), ("green", 32), ("yellow", 33), ("blue", 94)]: w(f"\\x1b[1;{code}m{name}\\x1b[0m \\x1b[2mdim\\x1b[0m \\x1b[3mitalic\\x1b[0m \\x1b[4munderlined\\x1b[0m \\x1b[7minverse\\x1b[0m\\n")
w("".join(f"\\x1b[48;5;{16 + 36 * i}m \\x1b[38;5;{i + 20}m{i}" for i in range(6)) + "\\x1b[0m \\x1b[38;2;255;255;160mtrue colour\\x1b[0m\\n")
w("\\x1b]8;;https://example.org/docs\\x1b\\\\a link\\x1b]8;;\\x1b\\\\ \\x1b]8;;javascript:alert(1)\\x1b\\\\no link\\x1b]8;;\\x1b\\\\\\n")
w("<img src=x onerror=alert(1)><script>alert(2)</script>\\n")
w("漢字 wide | e\\u0301 combined | 👍🏽 thumb\\n")
for i in range(101): w(f"\\r{i:3}%|{'█' * (i // 5):<20}| {i}/100")
w("\\n")
w("epoch\\nstep\\n")
for i in range(50): w(f"\\x1b[2A\\r\\x1b[2Kepoch {i}\\n\\r\\x1b[2Kstep {i * 10}\\n")
w("waiting\\n")
while not os.path.exists(${JSON.stringify(go)}): time.sleep(0.02)
for i in range(300): w(f"line {i} of the rest, Error {i}\\n" if i % 100 == 7 else f"line {i} of the rest\\n")
w("x" * 400 + "\\n")
w("the end")
`,
);
const live = begin(
  binary,
  ["run", "--quiet", "--capture", "--name", "prints", "--", "python3", program],
  { env, stdio: "ignore" },
);
const ended = new Promise((done) => live.on("exit", done));
await tab.goto(address);
await tab.getByRole("link", { name: "prints" }).click();
await row(11).getByText("step 490").waitFor();
assert.equal(await row(10).innerText(), "epoch 49");
assert.match(await row(9).innerText(), /^100%\|█{20}\| 100\/100$/);
await row(12).getByText("waiting").waitFor();
assert.match(await tab.locator("#output .reading").innerText(), /^13 rows/);
ok("progress bars show what they showed last, live");
const colour = (text) =>
  tab
    .locator(".term-text span", { hasText: new RegExp(`^${text}$`) })
    .first()
    .evaluate((e) => getComputedStyle(e).color);
assert.equal(new Set([await colour("red"), await colour("green"), await colour("blue")]).size, 3);
assert.equal(await tab.locator(".term-text a").count(), 1);
assert.equal(await tab.locator(".term-text a").getAttribute("href"), "https://example.org/docs");
assert.equal(await tab.locator(".term-text img, .term-text script").count(), 0);
assert.match(await row(7).innerText(), /^<img src=x onerror=alert\(1\)><script>/);
ok("colours are there, links are of the web alone, markup is text");
await shot(tab.locator("#output"), join(folder, "output-light.png"));
await accessible("the terminal, in light colours,", "#output");
await tab.keyboard.press("t");
await shot(tab.locator("#output"), join(folder, "output-dark.png"));
await accessible("the terminal, in dark colours,", "#output");
await tab.keyboard.press("t");

writeFileSync(go, "");
await ended;
await tab.locator(".term-text", { hasText: "the end" }).waitFor();
ok("the end is followed");
await term.focus();
await tab.keyboard.press("Home");
await row(1).getByText("red").waitFor();
await tab.getByRole("button", { name: "Follow the end" }).click();
await tab.locator(".term-text", { hasText: "the end" }).waitFor();
await term.focus();
await tab.keyboard.press("/");
await tab.keyboard.type("error");
await tab.locator(".hits", { hasText: /of 4$/ }).waitFor();
await tab.waitForURL(/find=error/);
const first = await tab.locator("mark.now").first().innerText();
await tab.keyboard.press("Enter");
await tab.locator(".hits", { hasText: /^[1-4] of 4$/ }).waitFor();
assert.equal(first.toLowerCase(), "error");
await shot(tab.locator("#output"), join(folder, "output-search.png"));
ok("a search finds and goes through what was found");
await tab.keyboard.press("Escape");
await tab.keyboard.press("End");
await tab.getByRole("button", { name: "Wrap", exact: true }).click();
await tab.waitForURL(/wrap=1/);
const long = (wraps) =>
  tab.waitForFunction(
    (wraps) =>
      [...document.querySelectorAll(".term-text")].some(
        (e) =>
          e.textContent.includes("xxxxx") && e.offsetHeight > 0 && e.offsetHeight > 30 === wraps,
      ),
    wraps,
  );
await long(true);
await tab.getByRole("button", { name: "Wrap", exact: true }).click();
await tab.locator(".term:not(.wraps)").waitFor();
await long(false);
ok("long rows are wrapped or not");
await tab.keyboard.press("End");
await term.focus();
await tab.keyboard.press("Home");
await tab.locator('[data-row="8"]').click();
await tab.locator('[data-row="10"]').click({ modifiers: ["Shift"] });
await tab.waitForURL(/row=9-11/);
await tab.getByRole("button", { name: "Copy", exact: true }).click();
await tab.getByText("3 rows are copied").waitFor();
assert.match(
  await tab.evaluate(() => navigator.clipboard.readText()),
  /^100%.*\nepoch 49\nstep 490$/s,
);
ok("picked rows stand in the address and are copied");
const [file] = await Promise.all([
  tab.waitForEvent("download"),
  tab.getByRole("button", { name: "Download" }).click(),
]);
const raw = readFileSync(await file.path(), "utf8");
assert.ok(raw.startsWith("\x1b[1;31mred") && raw.endsWith("the end"));
ok("the download has every byte");

// Far more than a browser could hold: only what is seen is fetched.
const big = join(data, "big.py");
writeFileSync(
  big,
  `
import sys
for i in range(${process.env.BIG_ROWS ?? 1_500_000}): sys.stdout.write(f"\\x1b[32m{i:8}\\x1b[0m step loss {i % 977 / 977:.6f}\\n")
print("needle in the hay")
`,
);
execFileSync(binary, ["run", "--quiet", "--capture", "--name", "big", "--", "python3", big], {
  env,
  stdio: "ignore",
  maxBuffer: 1 << 30,
});
let fetched = 0;
tab.on("response", (r) => {
  if (/output\?/.test(r.url())) fetched++;
});
await tab.goto(`${base}/runs/${id("big")}`);
await tab.locator(".term-text", { hasText: "needle in the hay" }).waitFor();
const rows = Number(process.env.BIG_ROWS ?? 1_500_000);
assert.match(
  await tab.locator("#output .reading").innerText(),
  new RegExp(`^${(rows + 2).toLocaleString("en")} rows`),
);
assert.ok((await tab.locator(".term-row").count()) < 60);
await term.evaluate((e) => {
  e.scrollTop = (e.scrollHeight - e.clientHeight) / 2;
});
await tab.locator(".term-text", { hasText: "step loss" }).first().waitFor();
const middle = Number((await tab.locator(".term-text").nth(5).innerText()).trim().split(" ")[0]),
  number = Number((await tab.locator(".term-number").nth(5).innerText()).replaceAll(",", ""));
assert.equal(number, middle + 1);
assert.ok(Math.abs(middle - rows / 2) < rows / 100);
await term.hover();
const top = async () =>
  Number((await tab.locator(".term-number").first().innerText()).replaceAll(",", ""));
const before = await top();
await tab.mouse.wheel(0, 180);
await tab.waitForFunction(
  (b) => Number(document.querySelector(".term-number").innerText.replaceAll(",", "")) !== b,
  before,
);
assert.ok(
  Math.abs((await top()) - before - 10) <= 2,
  `the wheel went ${(await top()) - before} rows`,
);
assert.ok(fetched < 20, `${fetched} parts were fetched`);
ok("of a large output only what is seen is fetched, and the wheel goes row by row");
await tab.getByRole("searchbox", { name: "Search the output" }).fill("needle in");
await tab.locator("mark.now", { hasText: "needle in" }).waitFor({ timeout: 120_000 });
ok("a search finds what was never fetched");

execFileSync(binary, ["run", "--quiet", "--name", "silent", "--", "python3", "-c", "print(1)"], {
  env,
  stdio: "ignore",
});
await tab.goto(`${base}/runs/${id("silent")}`);
await tab.locator("#output", { hasText: "was not kept" }).waitFor();
assert.match(
  await tab.locator("#output code").innerText(),
  /^hightide run --capture -- python3 -c/,
);
ok("a run whose output was not kept says how to keep it");

await tab.setViewportSize({ width: 400, height: 800 });
await tab.goto(`${base}/runs/${id("prints")}`);
await tab.locator(".term-text", { hasText: "the end" }).waitFor();
await narrow();
await term.scrollIntoViewIfNeeded();
await shot(tab, join(folder, "output-400.png"));
await accessible("the terminal at 400 pixels", "#output");
await tab.setViewportSize({ width: 1280, height: 900 });

// Four ranks that train together on this machine's processors. One works longer in its forward, one takes more memory, and none has a GPU.
// They are forks of one process that has imported PyTorch, as an import takes more computing than all the training.
const newest = readFileSync(here("../../requirements/torch.versions"), "utf8").match(/^\d.*/m)[0];
const cache = process.env.HIGHTIDE_CACHE ?? join(homedir(), ".cache/hightide");
const python = process.env.HIGHTIDE_TEST_PYTHON ?? join(cache, `torch-${newest}`, "bin/python");
if (existsSync(python)) {
  const train = join(data, "train.py");
  writeFileSync(
    train,
    `
import os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
kept = torch.ones((400 if rank == 1 else 1) << 18)
class Slow(torch.nn.Module):
    def forward(self, x):
        if rank == 2: time.sleep(0.06)
        return x
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), Slow(), torch.nn.Linear(256, 8)))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(200):
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
`,
  );
  const launcher = join(data, "launcher.py");
  writeFileSync(
    launcher,
    `
import os, sys
sys.path.append(${JSON.stringify(here("../../scripts"))})
import forkserver
ended = forkserver.run_ranks(4, [sys.executable, *sys.argv[1:]], os.environ)
sys.exit("\\n".join(f"exit {rank.returncode}: {rank.stderr}" for rank in ended if rank.returncode) or 0)
`,
  );
  const running = begin(
    binary,
    ["run", "--quiet", "--capture", "--name", "ranks", "--", python, launcher, train],
    { env, stdio: "ignore" },
  );
  const over = new Promise((done) => running.on("exit", done));
  while (
    !JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.some(
      (r) => r.name === "ranks",
    )
  )
    await new Promise((done) => setTimeout(done, 50));
  await tab.goto(`${base}/runs/${id("ranks")}`);
  await tab.locator("#ranks h2", { hasText: "4 ranks side by side" }).waitFor({ timeout: 120_000 });
  ok("ranks are set side by side while they run");
  assert.equal(await over, 0);
  await tab
    .locator(".suspect", { hasText: "First-cause suspect: rank 2" })
    .waitFor({ timeout: 60_000 });
  assert.match(await tab.locator(".suspect").innerText(), /straggler/);
  assert.match(await tab.locator(".suspect li").innerText(), /^Rank 1 takes more host memory/);
  const card = (title) =>
    tab.locator(".rank-card", {
      has: tab.locator("figcaption", { hasText: new RegExp(`^${title}`) }),
    });
  assert.equal(
    await card("Own work")
      .locator(".rank-bar.suspected")
      .evaluate((e) => [...e.parentElement.querySelectorAll(".rank-bar")].indexOf(e)),
    2,
  );
  assert.match(await card("Own work").locator("p").innerText(), /rank 2, median/);
  // none where too few steps were observed; of the others another may come last in some steps of a busy machine
  const heights = () =>
    card("Waiting")
      .locator(".rank-bar")
      .evaluateAll((all) => all.map((e) => e.querySelector("i")?.offsetHeight ?? Infinity));
  const waits = ([a, b, last, d]) => last <= Math.min(a, b, d) && last < Math.max(a, b, d);
  const until = Date.now() + 30_000; // the page reads the report once more as the run ends
  let seen = await heights();
  while (!waits(seen) && Date.now() < until) {
    await new Promise((r) => setTimeout(r, 100));
    seen = await heights();
  }
  assert.ok(
    waits(seen),
    `${seen}: ${await card("Waiting").locator(".rank-bars").getAttribute("aria-label")}`,
  );
  await tab.locator("#ranks .hint", { hasText: "Device memory was not compared" }).waitFor();
  ok("the straggler is suspected first, and the others wait for it");
  await tab
    .getByRole("group", { name: "Ranks" })
    .getByRole("button", { name: /rank 1/ })
    .click();
  await tab.waitForURL(/process=\d+/);
  await card("Host peak").locator(".rank-bar.picked").waitFor();
  await shot(tab.locator("#ranks"), join(folder, "ranks-light.png"));
  await accessible("the ranks, in light colours,", "#ranks");
  await tab.locator("#table-phases td.text", { hasText: "forward" }).first().waitFor();
  assert.equal(await tab.locator("#table-phases tbody td.text", { hasText: "forward" }).count(), 1);
  await card("Host peak").locator(".rank-bar").nth(1).click();
  await tab.waitForURL((url) => !url.search.includes("process"));
  await tab.locator("#table-phases tbody td.text", { hasText: "forward" }).nth(1).waitFor();
  ok("a click on a rank is the selection that the tables obey too");
  // a row of the table of phases is the selection too: the lanes and curves show it, a chip says it, and z goes back
  const forward = tab.locator("#table-phases tr", { hasText: "forward" }).first(),
    chips = tab.getByRole("region", { name: "What is selected" });
  await forward.click();
  await tab.waitForURL(/phase=forward/);
  await tab
    .locator("#table-phases tr.picked .pick[aria-pressed=true]", { hasText: "forward" })
    .first()
    .waitFor();
  await tab.locator("#table-phases tr.dim", { hasText: "backward" }).first().waitFor();
  assert.match(await chips.innerText(), /phase\s*forward/);
  await accessible("the page with a phase selected", "#table-phases, .chosen");
  await tab
    .locator("#table-ranks tr.pickable .pick, #table-processes tr.pickable .pick")
    .first()
    .focus();
  await tab.keyboard.press("Enter");
  await tab.waitForURL(/process=\d+/);
  await tab.keyboard.press("z");
  await tab.waitForURL((url) => !url.search.includes("process") && url.search.includes("phase"));
  await tab.locator("#timeline").scrollIntoViewIfNeeded();
  await shot(tab, join(folder, "phase-selected.png"));
  await chips.getByRole("button", { name: /phase/ }).click();
  await tab.waitForURL((url) => !url.search.includes("phase"));
  await chips.waitFor({ state: "hidden" });
  ok("a phase is selected by its row, shown by a chip, and undone");
  const [csv] = await Promise.all([
    tab.waitForEvent("download"),
    tab.locator("#table-phases").getByRole("button", { name: "CSV" }).click(),
  ]);
  const lines = readFileSync(await csv.path(), "utf8").split("\r\n");
  assert.match(lines[0], /^phase,.*time \(ns\)/);
  assert.ok(
    lines.some((l) => /^forward,.*,\d{6,}/.test(l)),
    `nanoseconds in ${lines[1]}`,
  );
  ok("a table is saved as CSV, in integers");
  const { width, height } = await tab.locator("#timeline").boundingBox();
  const [png] = await Promise.all([
      tab.waitForEvent("download"),
      tab.locator("#timeline .as-picture").click(),
    ]),
    picture = readFileSync(await png.path());
  assert.deepEqual(
    [picture.readUInt32BE(16), picture.readUInt32BE(20)],
    [Math.ceil(2 * width), Math.ceil(2 * (height + 26))],
    "twice the panel's size, and its caption",
  );
  const colours = await tab.evaluate(
    async (data) => {
      const image = new Image();
      image.src = data;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height),
        on = canvas.getContext("2d");
      on.drawImage(image, 0, 0);
      return new Set(new Uint32Array(on.getImageData(0, 0, image.width, image.height).data.buffer))
        .size;
    },
    `data:image/png;base64,${picture.toString("base64")}`,
  );
  assert.ok(colours > 100, `${colours} colours: texts and curves are drawn`);
  writeFileSync(join(folder, png.suggestedFilename()), picture);
  ok("a panel is saved as a picture");
  await tab.keyboard.press("t");
  await shot(tab.locator("#ranks"), join(folder, "ranks-dark.png"));
  await shot(tab.locator("#table-phases"), join(folder, "phases-dark.png"));
  await accessible("the ranks, in dark colours,", "#ranks");
  await tab.keyboard.press("t");
  await tab.setViewportSize({ width: 400, height: 800 });
  await narrow();
  await shot(tab.locator("#ranks"), join(folder, "ranks-400.png"));
  await tab.setViewportSize({ width: 1280, height: 900 });
  const page = join(data, "ranks.html");
  execFileSync(binary, ["report", id("ranks"), "--html", page], { env, stdio: "ignore" });
  const alone = await context.newPage();
  await alone.goto(`file://${page}`);
  await alone.locator("#ranks .suspect", { hasText: "rank 2" }).waitFor();
  await alone.locator(".rank-bar").first().click();
  await alone.locator(".rank-bar.picked").first().waitFor();
  await alone.waitForURL(/#process=\d+$/);
  await alone.reload(); // the address of the file carries it
  await alone.locator(".rank-bar.picked").first().waitFor();
  await alone.getByRole("link", { name: "Tables" }).click();
  await alone.waitForURL(/#process=\d+$/);
  await alone
    .getByRole("region", { name: "What is selected" })
    .getByRole("button", { name: /rank/ })
    .click();
  await alone.locator(".rank-bar.picked").first().waitFor({ state: "detached" });
  await alone.keyboard.press("z");
  await alone.locator(".rank-bar.picked").first().waitFor();
  await alone.close();
  ok("the report of one file has them too");
} else console.log(`left out: ranks, as there is no PyTorch at ${python}`);

// The heap follows the moment and the stretch that are chosen: a program that takes more each time it is told to.
const told = ["one", "two"].map((name) => join(data, name)),
  takes = join(data, "takes.py");
writeFileSync(
  takes,
  `
import os, time
def wait(path):
    while not os.path.exists(path): time.sleep(0.02)
early = b"x" * (30 << 20)
wait(${JSON.stringify(told[0])})
late = b"y" * (20 << 20)
wait(${JSON.stringify(told[1])})
`,
);
const taking = begin(binary, ["run", "--quiet", "--name", "takes", "--", "python3", takes], {
    env,
    stdio: "ignore",
  }),
  took = new Promise((done) => taking.on("exit", done));
/** When a line was read to hold so much: what it has not filled yet is not in it. */
const heldAt = async (line, mib) => {
  for (;;) {
    const answer = await ask(server, "/api/v1/runs/takes/heap?process=1&at_ns=9000000000000000"),
      set = answer.ok ? await answer.json() : { stacks: [] },
      held = set.stacks
        .filter(({ node }) => {
          const frame = set.frames[set.places[node]];
          return frame.file.endsWith("takes.py") && frame.line === line;
        })
        .reduce((sum, { bytes }) => sum + bytes, 0);
    if (held >= mib << 20) return set.time_ns;
    await new Promise((done) => setTimeout(done, 50));
  }
};
const early = await heldAt(5, 30);
writeFileSync(told[0], "");
const late = await heldAt(7, 20);
writeFileSync(told[1], "");
await took;
const heap = tab.locator("#heap-flames"),
  lines = async () =>
    (await heap.locator(".icicle .own small").allInnerTexts()).filter((line) =>
      line.startsWith("takes.py"),
    ),
  pressed = (name) => heap.locator('[aria-pressed="true"]', { hasText: name });
await tab.goto(`${base}/runs/${id("takes")}?at=${early}`);
await pressed("at the moment").waitFor();
assert.deepEqual(await lines(), ["takes.py:5"], "only what was held by then");
// beside the 30 MiB the interpreter, as sampled: 10 MiB of it are one sample where an import was costly
assert.match(await heap.locator("figcaption").innerText(), /^[34]\d\.\d MiB: bytes held at \d/);
await tab.goto(`${base}/runs/${id("takes")}?range=${early}-${late}`);
await pressed("kept of the stretch").waitFor();
assert.deepEqual(await lines(), ["takes.py:7"], "only what the stretch took");
await shot(heap, join(folder, "heap-stretch.png"));
await accessible("the heap of a stretch", "#heap-flames");
await heap.getByRole("button", { name: "functions" }).click();
await accessible("the functions of a heap", "#heap-flames");
await heap.getByRole("button", { name: "held at the peak" }).click();
await pressed("held at the peak").waitFor();
await tab.goto(`${base}/runs/${id("takes")}`);
await pressed("held at the peak").waitFor();
assert.ok(
  await heap.getByRole("button", { name: "at the moment" }).isHidden(),
  "no moment is chosen",
);
await tab.locator("#timeline .groups .track canvas").first().click();
await pressed("at the moment").waitFor();
ok("the heap by call stack is that of the moment or the stretch that is chosen");

assert.deepEqual(outside, [], "a request leaves the machine");
assert.deepEqual(complaints, [], "the page complains");
await browser.close();
await server.end();
console.log(`${passed} passed, 0 failed`);
