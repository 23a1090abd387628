// The page of tunes, in a real Chromium on the real server: a form, plans as they are run, the frontier, and the plan that is chosen.
//   node test/tune.mjs [folder for screenshots]
// HIGHTIDE_TEST_PYTHON names a Python with torch; without one, no program is tuned, and that is said.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addressOf,
  askJSON,
  binary,
  fresh,
  here,
  launch,
  opened,
  python,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const folder = screenshots("tune"),
  data = fresh("data"),
  env = { ...process.env, HIGHTIDE_DATA: data };
const golden = here("../../internal/tune/testdata/blocks.json"),
  result = JSON.parse(readFileSync(golden, "utf8"));

const server = await serve(env),
  browser = await launch();
let passed = 0;
async function look(name, path, options, check, on = server) {
  await opened(browser, name, addressOf(on, path), options, async (tab) => {
    await tab.locator("#tune").waitFor();
    await check(tab);
    await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  });
  passed++;
}
const flat = (text) => text.replace(/\s+/g, " ").trim();
const open = async (tab, path = golden) => {
  await tab.locator('#tune input[type="file"]').setInputFiles(path);
  await tab.locator(".frontier .answer").waitFor();
};
const shape = (p) => `.frontier .plan-mark[aria-label^="${p.what}: "]`;
const chosen = async (tab) => (await tab.locator(".plan-chosen h3").innerText()).toLowerCase();

/** The chart, the table and the sentence are the result's own. */
async function saysTheSame(tab, r) {
  assert.ok(flat(await tab.locator(".frontier .answer").innerText()).endsWith(r.answer));
  assert.equal(await tab.locator(".frontier .plan-mark").count(), r.points.length);
  const more = tab.locator(".frontier .more").first();
  if (await more.isVisible()) await more.click();
  const rows = await tab.locator(".frontier tbody tr").allInnerTexts();
  assert.deepEqual(
    rows.map((row) => row.split("\t")[0]),
    r.points.map((p) => p.what),
  );
  const picked = r.points.find((p) => p.recommended);
  assert.equal(await chosen(tab), picked.what.toLowerCase(), "the recommended plan is chosen");
  assert.equal(await tab.locator(".plan-chosen .spec").first().textContent(), picked.plan_file);
  await hasStep(tab, r, picked);
}

/** The highest point of a line, in bytes by the scale that the device's memory gives. */
const peakOf = async (tab, line) => {
  const d = await tab.locator(`.plan-chosen .${line}`).getAttribute("d");
  return Math.min(...[...d.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map((m) => Number(m[1])));
};

/** Memory over one step: the plan's line stands under today's as its figures do. */
async function hasStep(tab, r, p) {
  const [plan, today] = [p.curve, r.need_curve].map((c) =>
    c ? Math.max(...c.points.map((at) => at.allocated_bytes)) : undefined,
  );
  assert.ok(today !== undefined && plan !== undefined, "a tune of one process has both curves");
  assert.equal(plan, p.verdict.peak_allocated_bytes, "its highest is the run's peak");
  await tab.locator(".plan-chosen .course-plan").waitFor();
  const [high, low] = [await peakOf(tab, "course-today"), await peakOf(tab, "course-plan")];
  assert.equal(Math.sign(low - high), Math.sign(today - plan), "the lower peak is drawn lower");
  const box = await tab.locator(".plan-chosen .picture svg").boundingBox();
  assert.ok(box.width <= (await tab.evaluate(() => innerWidth)), "it is no wider than the page");
}

await look("form", "/tune", {}, async (tab) => {
  await tab.getByLabel("Command").fill("python train.py --lr 1e-3");
  await tab.locator(".start-row .hint", { hasText: "Choose a GPU." }).waitFor();
  await tab.locator(".pick", { hasText: "NVIDIA A10" }).first().click();
  await tab.getByLabel("Goal").fill("headroom=10%");
  assert.equal(
    flat(await tab.locator(".start .command").innerText()),
    "hightide tune --gpu a10 --goal headroom=10% -- python train.py --lr 1e-3",
  );
  await tab.locator(".start .banner", { hasText: "hightide ui --allow-exec" }).waitFor();
});

for (const [width, scheme] of [
  [1280, "light"],
  [1280, "dark"],
  [400, "light"],
  [400, "dark"],
])
  await look(`kept-${width}-${scheme}`, "/tune", { width, scheme }, async (tab) => {
    await open(tab);
    await saysTheSame(tab, result);
    assert.deepEqual(await violations(tab), []);
  });

const served = here("../../internal/tune/testdata/server.json");

await look("server", "/tune", {}, async (tab) => {
  const r = JSON.parse(readFileSync(served, "utf8"));
  await open(tab, served);
  assert.match(
    flat(await tab.locator(".frontier .answer").innerText()),
    /485,600 tokens of KV cache/,
  );
  assert.equal(await tab.locator(".frontier .answer .outcome").innerText(), "fits");
  assert.ok((await tab.locator(".frontier .command").innerText()).includes("--max-num-seqs 64"));
  assert.equal(await tab.locator(".frontier tbody tr:visible").count(), r.server.points.length);
  assert.equal(await tab.locator(".frontier .plan-mark:visible").count(), 0, "there are no plans");
  assert.deepEqual(await violations(tab), []);
});

await look("choose", "/tune", { downloads: true }, async (tab) => {
  await open(tab);
  const [first, other] = [
    result.points[0],
    result.points.findLast((p) => p.verdict.verdict !== "oom" && !p.recommended),
  ];
  await tab.locator(shape(other)).click();
  assert.equal(await chosen(tab), other.what.toLowerCase(), "a click chooses");
  assert.equal(new URL(tab.url()).searchParams.get("plan"), other.what, "the address has it");
  assert.equal(await tab.locator(".frontier tr.picked .pick").innerText(), other.what);
  assert.match(
    await tab.locator(".plan-figures").innerText(),
    /Peak of the device[\s\S]* of 1\.76 GiB/,
  );
  assert.equal(
    flat(await tab.locator(".plan-chosen .command").first().innerText()),
    "hightide run --plan hightide.plan.toml -- python train.py",
  );
  const [file] = await Promise.all([
    tab.waitForEvent("download"),
    tab.getByRole("button", { name: "Save hightide.plan.toml" }).click(),
  ]);
  assert.equal(file.suggestedFilename(), "hightide.plan.toml");
  assert.equal(readFileSync(await file.path(), "utf8"), other.plan_file, "and as a file");
  await tab.locator(".frontier .pick", { hasText: first.what }).first().click();
  assert.equal(await chosen(tab), first.what.toLowerCase(), "a row chooses");
  assert.equal(await tab.locator(".plan-chosen .course-today").count(), 1, "as it is, one line");
  assert.equal(await tab.locator(".plan-chosen .course-plan").count(), 0);
  assert.equal(await tab.locator(".plan-chosen .command").count(), 0, "no change is no plan");
  await tab.locator(shape(other)).focus();
  await tab.keyboard.press("Enter");
  assert.equal(await chosen(tab), other.what.toLowerCase(), "so does the keyboard");
  assert.equal(
    await tab.evaluate(() => document.activeElement.getAttribute("aria-pressed")),
    "true",
    "which stays there",
  );
});

await look("not-a-result", "/tune", {}, async (tab) => {
  for (const [text, says] of [
    ["{", /no JSON/],
    ["{}", /no result of hightide tune/],
    [JSON.stringify({ ...result, version: 2 }), /Version 2/],
  ]) {
    const path = join(data, "strange.json");
    writeFileSync(path, text);
    await tab.locator('#tune input[type="file"]').setInputFiles(path);
    await tab.locator(".failure", { hasText: says }).waitFor();
  }
  await open(tab);
  assert.equal(await tab.locator(".failure").count(), 0, "a good one afterwards is shown");
});

if (python) {
  const script = join(data, "train.py");
  writeFileSync(
    script,
    `import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(256, 1024), nn.Linear(1024, 256)
    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(6))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(32768, 256, device="cuda")).square().mean().backward()
    optimizer.step()
`,
  );
  const command = [python, script],
    asked = ["--gpu", "t4", "--memory", "1200MiB"],
    json = join(data, "tuned.json");
  execFileSync(
    binary,
    ["tune", "-q", ...asked, "-o", join(data, "plan.toml"), `--json=${json}`, "--", ...command],
    { env },
  );
  const terminal = JSON.parse(readFileSync(json, "utf8")),
    may = await serve(env, ["--allow-exec"]);
  await look(
    "tuned",
    "/tune",
    {},
    async (tab) => {
      await tab.getByLabel("Command").fill(command.join(" "));
      await tab.getByLabel("GPU", { exact: true }).fill("t4");
      await tab.getByText("More settings").click();
      await tab.getByLabel("Memory", { exact: true }).fill("1200MiB");
      await tab.getByRole("button", { name: "Tune it" }).click();
      await tab.locator(".frontier .plan-mark").first().waitFor(); // while others are to come
      await tab.locator(".frontier .answer").waitFor();
      await saysTheSame(tab, terminal);
      const { jobs } = await askJSON(may, "/jobs");
      assert.match(jobs[0].answer, /^fits.* with a plan$/);
      const ours = (await askJSON(may, `/jobs/${jobs[0].id}`)).result;
      const figures = (points) => points.map(({ curve: _, ...rest }) => rest); // where a step ends is told by a clock
      assert.deepEqual(figures(ours.points), figures(terminal.points), "one set of figures");
      await tab.reload();
      await tab.locator(".frontier .answer").waitFor();
      await saysTheSame(tab, terminal);
    },
    may,
  );
  await may.end();
}

await server.end();
await browser.close();
process.stdout.write(shown(folder));
console.log(
  `${passed} passed, 0 failed${python ? "" : "; not tuned: HIGHTIDE_TEST_PYTHON names no Python with torch"}`,
);
