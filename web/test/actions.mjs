// The pages of the live web UI that do something, in a real Chromium on the real server: imagine, fit, jobs, matrices, differences, what if.
//   node test/actions.mjs [folder for screenshots]
// HIGHTIDE_TEST_PYTHON names a Python with torch; without one, imagine and fit are left out and said to be.

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
  openAgain,
  python,
  screenshots,
  serve,
  shot,
  shown,
  violations,
} from "./kit.mjs";

const real = here("../../testdata/real/h100-lm-ctx128-train-step.pickle");
const folder = screenshots("actions"),
  data = fresh("data");
const env = { ...process.env, HIGHTIDE_DATA: data };
let passed = 0,
  again = null;
const left = [];

const browser = await launch();

async function look(name, server, path, { width = 1280, scheme = "light" }, check, allowed = /^$/) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    acceptDownloads: true,
  });
  const tab = await context.newPage(),
    complaints = [];
  tab.on(
    "console",
    (m) =>
      ["error", "warning"].includes(m.type()) &&
      !allowed.test(m.text()) &&
      complaints.push(m.text()),
  );
  tab.on("pageerror", (e) => complaints.push(e.message));
  tab.on(
    "request",
    (r) =>
      new URL(r.url()).host === server.address.host ||
      r.url().startsWith("data:") ||
      r.url().startsWith("blob:") ||
      complaints.push(`asks for ${r.url()}`),
  );
  await tab.goto(addressOf(server, path));
  await check(tab);
  assert.ok(
    !/undefined|NaN|Infinity|\[object/.test(await tab.locator("body").innerText()),
    `${name}: no holes`,
  );
  assert.deepEqual(complaints, [], `${name}: the page complains`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
  await shot(tab, join(folder, `${name}.png`), { fullPage: true });
  await context.close();
  passed++;
}

async function saved(tab, button) {
  const [file] = await Promise.all([tab.waitForEvent("download"), button.click()]);
  const path = join(folder, file.suggestedFilename());
  await file.saveAs(path);
  return [file.suggestedFilename(), readFileSync(path, "utf8")];
}

// two runs to compare, and a matrix
for (const [name, size] of [
  ["small", 60],
  ["large", 160],
])
  execFileSync(
    binary,
    [
      "run",
      "--quiet",
      "--name",
      name,
      "--",
      "python3",
      "-c",
      `x = bytearray(${size} << 20)\nimport time; time.sleep(0.7)`,
    ],
    { env },
  );
const runs = JSON.parse(execFileSync(binary, ["ls", "--json"], { env, encoding: "utf8" })).runs.map(
    (r) => r.id,
  ),
  [large, small] = runs;

const closed = await serve(env, [real]);
await look("imagine-closed", closed, "/imagine", {}, async (tab) => {
  await tab.getByLabel("Command").fill("python train.py --lr '1 e'");
  await tab.locator(".pick", { hasText: "NVIDIA A10" }).first().click();
  assert.equal(
    await tab
      .locator(".start .command")
      .innerText()
      .then((t) => t.trim()),
    "hightide imagine --gpu a10 -- python train.py --lr '1 e'",
    "the form makes the line to copy",
  );
  await tab.locator(".start .banner").waitFor();
  assert.match(
    await tab.locator(".start .banner").innerText(),
    /hightide ui --allow-exec/,
    "it says how programs are allowed",
  );
  assert.ok(!(await tab.locator(".start .primary").isVisible()));
  const all = await tab.locator("#catalogue tbody tr").count();
  await tab.getByLabel("At least so many GiB").fill("80");
  await tab.getByLabel("At most so many USD an hour").fill("4");
  const rows = await tab.locator("#catalogue tbody tr").allInnerTexts();
  assert.ok(
    rows.length > 0 &&
      rows.length < all &&
      rows.every((r) => {
        const [, gib, usd] = r.split("\t");
        return parseFloat(gib) >= 79 && parseFloat(usd) <= 4;
      }),
    `filters: ${rows}`,
  );
});
await look("fit-closed", closed, "/fit", { width: 400, scheme: "dark" }, async (tab) => {
  await tab.getByLabel("Command").fill("python train.py");
  assert.match(
    await tab.locator(".start-row .hint").innerText(),
    /\{batch\}/,
    "what is missing is said",
  );
  await tab.getByLabel("Model", { exact: true }).selectOption("bert");
  await tab.getByLabel("GPU", { exact: true }).fill("a10");
  await tab.getByLabel("Multiples of").fill("8");
  assert.equal(
    await tab
      .locator(".start .command")
      .innerText()
      .then((t) => t.trim()),
    "hightide fit --model bert --gpu a10 --step 8",
  );
});
await look("diff", closed, `/diff?a=${small}&b=${large}`, {}, async (tab) => {
  await tab.locator("#difference svg").waitFor();
  assert.match(await tab.locator("#difference h2").innerText(), /small → large/);
  const [before, after] = await tab
    .locator("#difference .figures dd")
    .first()
    .innerText()
    .then((t) => t.split("→").map(parseFloat));
  assert.ok(
    after - before > 60 && after - before < 140,
    `a hundred MiB more: ${before} → ${after}`,
  );
  assert.ok(
    (await tab.locator("#difference svg rect").count()) >= 3,
    "the waterfall has its ends and a step",
  );
  assert.ok(
    (await tab.locator("#bothcourses .picture svg").count()) === 1 &&
      (await tab.locator("#difftable tbody tr").count()) > 1,
  );
  const [name, svg] = await saved(
    tab,
    tab.locator("#difference .saves button", { hasText: "SVG" }),
  );
  assert.ok(
    /^waterfall-.*\.svg$/.test(name) && svg.includes("before") && !/var\(--|href=/.test(svg),
    name,
  );
  const curves = tab.locator("#bothcourses .both svg");
  await curves.scrollIntoViewIfNeeded();
  const box = await curves.boundingBox(),
    [from, to, high] = [box.x + box.width * 0.4, box.x + box.width * 0.7, box.y + 80];
  await tab.mouse.move(from, high);
  await tab.mouse.down();
  await tab.mouse.move(to, high);
  await tab.mouse.up();
  await tab.mouse.click((from + to) / 2, high);
  const cells = await tab
    .locator("#bothcourses tbody tr")
    .evaluateAll((rows) =>
      rows.map((r) =>
        [...r.querySelectorAll("td")].map((c) =>
          c.title
            ? Number(c.title.replace(/\D/g, "")) * (c.textContent.includes("−") ? -1 : 1)
            : null,
        ),
      ),
    );
  const apart = (a, b) => (a === null || b === null ? null : b - a); // what one of them did not observe has no difference
  assert.ok(
    cells.length === 3 && cells[0].every((v, i) => apart(v, cells[1][i]) === cells[2][i]),
    `the table has both and their difference: ${JSON.stringify(cells)}`,
  );
  assert.match(
    tab.url(),
    /range=\d+-\d+&at=\d+|at=\d+&range=\d+-\d+/,
    "a moment and a stretch stand in the address",
  );
  assert.deepEqual(await tab.locator(".chosen .chip span").allInnerTexts(), ["stretch", "moment"]);
  assert.ok(
    (await curves.locator(".moment").count()) === 1 &&
      (await curves.locator(".stretch").count()) === 1 &&
      (await curves.locator("circle").count()) ===
        [cells[0], cells[1]].filter((c) => c[0] !== null).length,
    "the curves that were observed then show them",
  );
  await tab.keyboard.press("Escape");
  await tab.locator(".chosen").waitFor({ state: "hidden" });
  const [file, page] = await saved(tab, tab.getByRole("button", { name: "One file to share" }));
  assert.ok(
    file === "difference.html" && /id="hightide-report">[A-Za-z0-9+\/=]{1000}/.test(page),
    `the page as one file: ${file}, ${page.length} characters`,
  );
  await tab.getByRole("button", { name: "Swap" }).click();
  await tab.locator("#difference h2", { hasText: "large → small" }).waitFor();
  assert.match(tab.url(), new RegExp(`a=${large}&b=${small}`), "the address is a permalink");
});
await look(
  "diff-narrow",
  closed,
  `/diff?a=${small}&b=${large}`,
  { width: 390, scheme: "dark" },
  (tab) => tab.locator("#difference svg").waitFor(),
);
await look("diff-choose", closed, "/diff", {}, async (tab) => {
  await tab.getByLabel("Before").selectOption(small);
  await tab.getByLabel("After").selectOption(large);
  await tab.locator("#difference svg").waitFor();
});

const opened = await askJSON(closed, "/snapshots");
const snapshot = opened.snapshots?.[0]?.id;
await look("snapshots", closed, "/snapshots", {}, async (tab) => {
  await tab.locator("#snapshots a", { hasText: "h100-lm-ctx128-train-step.pickle" }).click();
  await tab.locator("#explorer canvas").first().waitFor();
  await tab.getByRole("link", { name: /What if the allocator/ }).click();
  await tab.locator("#whatif .said:not(:empty)").waitFor();
});
const answered = (tab) => tab.locator("#whatif .said:not(:empty)").waitFor();
await look("whatif", closed, `/snapshots/${snapshot}/whatif`, {}, async (tab) => {
  await answered(tab);
  assert.match(await tab.locator("#whatif .said").innerText(), /^The same peak of reserved memory/);
  await tab.locator("#knob-expandable_segments").focus();
  await tab.keyboard.press("Space");
  await tab
    .locator("#whatif .command", { hasText: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" })
    .waitFor();
  assert.match(
    await tab.locator("#whatif .said").innerText(),
    /less|more/,
    "what is different is said",
  );
  await tab.locator("#knob-gpu").selectOption("a100-40g");
  await tab
    .locator("#whatif .verdict-line[data-outcome='out of memory']", {
      hasText: /^Out of memory at event [\d,]+ of [\d,]+: a request for/,
    })
    .waitFor();
  await tab.locator("#knob-gpu").selectOption("");
  await tab.locator("#whatif .said", { hasText: "instead of" }).waitFor();
  // one selection: a block of a map, a moment of the curve
  const tape = tab.locator(".tape-box canvas").last(),
    { height } = await tape.boundingBox();
  for (let y = height - 12; y > 0 && !tab.url().includes("block="); y -= 16)
    await tape.click({ position: { x: 200, y } }); // blocks from before the trace have no event
  assert.match(tab.url(), /block=\d+/, "a block that is clicked is the selection");
  await tab.locator("#whatif .u-over").click({ position: { x: 200, y: 100 } });
  await tab.waitForFunction(() => new URLSearchParams(location.search).has("at"));
  const at = Number(new URL(tab.url()).searchParams.get("at"));
  await tab.waitForFunction((at) => {
    // both sides are shown as of then
    const told = [
      ...document.querySelector(".tape-box h3 span").textContent.matchAll(/after event ([\d,]+)/g),
    ].map((m) => Number(m[1].replaceAll(",", "")));
    return told.length === 2 && told.every((event) => event <= at);
  }, at);
  await tab.getByRole("button", { name: "Show the peaks" }).click();
  await tab.waitForFunction(() => !new URLSearchParams(location.search).has("at"));
  // what blocks are for: colours, and one of them alone
  await tab.locator("#whatif .sites button", { hasText: "gradients" }).click();
  await tab
    .locator('#whatif .sites button[aria-pressed="true"]', { hasText: "gradients" })
    .waitFor();
  assert.equal(new URL(tab.url()).searchParams.get("category"), "gradients");
  await tab.getByRole("button", { name: "Apart" }).click();
  assert.equal(await tab.locator(".tape-box canvas").count(), 2, "a map for each side");
  // the form stands in the address
  assert.deepEqual(
    Object.fromEntries(
      ["settings", "maps"].map((key) => [key, new URL(tab.url()).searchParams.get(key)]),
    ),
    { settings: "expandable_segments:True", maps: "apart" },
  );
  await tab.reload();
  await tab
    .locator("#whatif .command", { hasText: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" })
    .waitFor();
  assert.ok(await tab.locator("#knob-expandable_segments").isChecked());
  assert.equal(await tab.locator(".tape-box canvas").count(), 2);
  // a search, as a job
  await tab.getByRole("button", { name: "Search the best settings" }).click();
  await tab.locator(".found button").first().waitFor({ timeout: 120_000 });
  const other = tab.locator(".found button", { hasNotText: "default settings" }).first(),
    best = await other.locator("code").textContent();
  await tab.getByRole("button", { name: "Default settings", exact: true }).click();
  await tab.locator("#whatif .command").waitFor({ state: "detached" });
  await other.click();
  await tab.locator("#whatif .command", { hasText: best }).waitFor();
});
await look(
  "whatif-narrow",
  closed,
  `/snapshots/${snapshot}/whatif`,
  { width: 400, scheme: "dark" },
  answered,
);
await closed.end();

const open = await serve(env, ["--allow-exec"]);
await look("matrix", open, "/matrices", {}, async (tab) => {
  await tab.locator(".empty").waitFor();
  await tab.getByLabel("Name", { exact: true }).fill("tiny");
  await tab
    .getByLabel("Spec")
    .fill(
      "axes: {size: [20, 60], mode: [a, b]}\ncommand: python3 -c \"x = bytearray({size} << 20); import time; time.sleep(0.6); print('{mode}')\"\nrepeats: {least: 2, most: 2, figure: rss}",
    );
  await tab.getByRole("button", { name: "Measure it" }).click();
  await tab.locator("#job a", { hasText: "Open the matrix" }).waitFor();
  await tab.locator("#job a", { hasText: "Open the matrix" }).click();
  await tab.locator("#bars .mark").first().waitFor();
  const trials = () =>
    tab
      .locator(".matrix-page")
      .innerText()
      .then((t) => Number(/(\d+) trials?/.exec(t)?.[1] ?? 0));
  const chip = tab
      .locator(".axis", { hasText: "mode" })
      .getByRole("button", { name: "b", exact: true }),
    before = await trials();
  await tab.locator("#cells th button", { hasText: "cell" }).first().click();
  await chip.click();
  await tab.evaluate(() => {
    window.stayed = document.querySelector("#bars");
    document.querySelector("#filters").scrollIntoView({ behavior: "instant" });
  });
  const top = await tab.locator("#filters").evaluate((e) => e.getBoundingClientRect().top);
  await tab.waitForFunction(() => document.querySelector("#bars") !== window.stayed, null, {
    timeout: 120_000,
  }); // a trial was kept
  assert.ok((await trials()) > before, "the page follows");
  assert.equal(await chip.getAttribute("aria-pressed"), "true", "the filter is kept");
  assert.equal(
    await tab.evaluate(() => document.activeElement.textContent),
    "b",
    "so is the focus",
  );
  assert.match(
    await tab.locator("#cells th[aria-sort]").innerText(),
    /Cell/,
    "and the order of the table",
  );
  await tab.waitForFunction(
    (top) => Math.abs(document.querySelector("#filters").getBoundingClientRect().top - top) < 4,
    top,
  ); // what is read stays in its place
  await chip.click();
  await tab.locator(".live-matrix:empty").waitFor({ state: "attached", timeout: 180_000 }); // it follows until all is measured
  assert.equal(await tab.locator("#bars .mark").count(), 4, "each cell has its bar");
  assert.match(await tab.locator(".matrix-page").innerText(), /8 trials/);
  await tab
    .locator(".axis", { hasText: "mode" })
    .getByRole("button", { name: "a", exact: true })
    .click();
  await tab.waitForFunction(() => document.querySelectorAll("#bars .mark").length === 2);
  await tab.locator("#bars .mark").first().click();
  const report = tab.locator("#cell a.report").first();
  assert.match(await report.getAttribute("href"), /^\/runs\/\w+$/, "a cell leads to its runs");
  await tab.keyboard.press("Escape");
});
await look("jobs", open, "/jobs", { scheme: "dark" }, async (tab) => {
  const row = tab.locator("#jobs tbody tr", { hasText: "bench tiny" });
  await row.waitFor();
  assert.match(await row.innerText(), /done/);
});
await look("job-cancelled", open, "/imagine", {}, async (tab) => {
  await tab.getByLabel("Command").fill("sh -c 'sleep 1000'");
  await tab.getByLabel("GPU", { exact: true }).fill("a10");
  await tab.getByRole("button", { name: "Imagine it" }).click();
  await tab.locator("#job .outcome", { hasText: "running" }).waitFor();
  assert.match(tab.url(), /job=job-\d+/, "the address holds the job: a reload finds it again");
  await tab.reload();
  await tab.getByRole("button", { name: "Cancel" }).click();
  await tab.locator("#job .outcome", { hasText: "cancelled" }).waitFor({ timeout: 60_000 });
  assert.match(
    await tab.locator(".verdict .answer").innerText(),
    /no verdict[\s\S]*No verdict on NVIDIA A10: it was cancelled before its first step/,
    "what was cancelled is not said to fit",
  );
  assert.ok(
    !/--duration|What it costs/.test(await tab.locator("#job").innerText()),
    "nobody gave a duration, and nothing is reckoned from it",
  );
});
await look("job-failed", open, "/imagine", {}, async (tab) => {
  await tab.locator(".start code", { hasText: process.cwd() }).waitFor(); // where programs start
  await tab.getByLabel("Command").fill("sh -c 'echo the data is not there; exit 3'");
  await tab.getByLabel("GPU", { exact: true }).fill("a10");
  await tab.getByLabel("How many").fill("0");
  await tab
    .locator(".start-row .hint", { hasText: "How many: a whole number from 1 on." })
    .waitFor();
  assert.ok(
    await tab.getByRole("button", { name: "Imagine it" }).isDisabled(),
    "what cannot be is not asked for",
  );
  await tab.getByLabel("How many").fill("");
  await tab.getByRole("button", { name: "Imagine it" }).click();
  await tab
    .locator(".verdict .answer", {
      hasText: "No verdict on NVIDIA A10: the program failed for a reason of its own, exit code 3.",
    })
    .waitFor();
  assert.ok(
    await tab.locator("#job pre", { hasText: "the data is not there" }).isVisible(),
    "what the program wrote is open",
  );
  assert.match(
    await tab.locator("#job").innerText(),
    /imagine sh -c .* on a10/,
    "the job says on which GPU",
  );
  assert.ok(
    !/What it costs|Of the context beside/.test(await tab.locator("#job").innerText()),
    "nothing is said of memory that nothing took",
  );
});
if (python) {
  const script = join(data, "train.py");
  writeFileSync(
    script,
    "import sys, torch\nm = torch.nn.Linear(4096, 4096).cuda()\no = torch.optim.Adam(m.parameters())\nfor _ in range(6):\n    m(torch.randn(int(sys.argv[1]), 4096, device='cuda')).sum().backward()\n    o.step()\n    o.zero_grad()\n",
  );
  await look("imagine", open, "/imagine", {}, async (tab) => {
    await tab.getByLabel("Command").fill(`${python} ${script} 64`);
    await tab.locator(".pick", { hasText: "Tesla T4" }).click();
    await tab.getByText("More settings").click();
    await tab.getByLabel("Ranks of a cluster").fill("2");
    await tab.getByRole("button", { name: "Imagine it" }).click();
    await tab.locator(".verdict .answer").waitFor({ timeout: 240_000 });
    assert.match(
      await tab.locator(".verdict .answer").innerText(),
      /fits[\s\S]*imagined[\s\S]*The fullest of 2 × Tesla T4 has [\d.]+ [MG]iB in use and [\d.]+ GiB free/i,
    );
    assert.match(
      await tab.locator("#catalogue tbody tr", { hasText: "Tesla T4" }).innerText(),
      /fits\s+imagined/,
      "the catalogue shows what was found",
    );
    assert.match(
      await tab.locator("#catalogue tbody tr", { hasText: "NVIDIA L40S" }).innerText(),
      /fits\s+estimated/,
    );
    assert.match(
      await tab.locator("#catalogue tbody tr", { hasText: "Tesla P100" }).innerText(),
      /–\s+this torch build has no kernels for 6.0/,
      "what has no kernels is not said to fit",
    );
    const cheapest = await tab.locator("#catalogue tbody tr").first().innerText(),
      told = await tab.locator("#catalogue [role=status]").innerText();
    assert.ok(
      /cheapest/.test(cheapest) &&
        /cheapest that it fits with room: .* USD an hour for each \((imagined|estimated)\)/.test(
          told,
        ),
      `the cheapest that it fits comes first: ${cheapest} ${told}`,
    );
    const ranks = tab.locator(".rank-grid button");
    assert.equal(await ranks.count(), 2, "a cell for each rank");
    await ranks.nth(1).focus();
    assert.match(
      await tab.locator("#job .reading", { hasText: "rank 1 of 2" }).innerText(),
      /rank 1 of 2: [\d.]+ [MG]iB, [\d.]+ % of its device, played alone/,
    );
    assert.deepEqual(await violations(tab), [], "axe, with a verdict, its ranks and the catalogue");
    const yearly = () => tab.locator(".cost .figures dd").first().innerText();
    const before = await yearly();
    await tab.getByLabel("Hours a year").fill("4380");
    assert.notEqual(await yearly(), before, "the cost follows its assumptions");
    await tab.locator("#job a", { hasText: "Open its run" }).waitFor();
    await tab.getByRole("link", { name: "Its blocks, one by one" }).click();
    await tab.locator("#explorer canvas").first().waitFor();
  });
  await look("fit", open, "/fit", { scheme: "dark" }, async (tab) => {
    const plain = join(data, "plain.py"); // without an optimizer, which imports PyTorch's compiler at each start
    writeFileSync(
      plain,
      "import sys, torch\nm = torch.nn.Linear(4096, 4096).cuda()\nfor _ in range(3):\n    m(torch.randn(int(sys.argv[1]), 4096, device='cuda')).sum().backward()\n",
    );
    await tab.getByLabel("Command").fill(`${python} ${plain} {batch}`);
    await tab.getByLabel("GPU", { exact: true }).fill("t4");
    await tab.getByText("More settings").click();
    await tab.getByLabel("At most", { exact: true }).fill("64");
    await tab.getByRole("button", { name: "Search it" }).click();
    await tab.locator("#job", { hasText: "No trial has ended." }).waitFor();
    await tab.locator("#job table tbody tr td.number").first().waitFor({ timeout: 240_000 }); // trials as they come
    await tab
      .locator("#job .answer", { hasText: /So far a batch of \d+ fits|The largest batch/ })
      .waitFor();
    await tab
      .locator(".verdict .answer", { hasText: "The largest batch" })
      .waitFor({ timeout: 400_000 });
    assert.match(
      await tab.locator(".verdict .answer").innerText(),
      /The largest batch that fits is 64; none was seen to fail/,
    );
    assert.ok((await tab.locator("#job svg circle").count()) >= 2, "the curve has its trials");
    assert.match(await tab.locator(".cost").innerText(), /Paid for it a year/);
    assert.match(
      await tab.locator("#catalogue tbody tr", { hasText: "Tesla T4" }).innerText(),
      /fits\s+imagined/,
      "the catalogue shows what the largest batch leaves",
    );
    assert.match(
      await tab.locator("#catalogue").innerText(),
      /Headroom and verdict are at a batch of 64/,
    );
    assert.match(
      await tab.locator("#catalogue tbody tr", { hasText: "Tesla P100" }).innerText(),
      /no kernels for 6.0/,
    );
    assert.match(
      await tab.locator("#job .verdict").innerText(),
      /At a batch of 16, taken as none was given for now, /,
      "what was assumed is said to be",
    );
    await tab.getByRole("link", { name: "Imagine a batch of 64 alone" }).click();
    await tab
      .locator(".start .command", { hasText: `hightide imagine --gpu t4 -- ${python} ${plain} 64` })
      .waitFor();
  });
} else left.push("imagine and fit: HIGHTIDE_TEST_PYTHON names no Python with torch");
await look(
  "token",
  open,
  "/jobs",
  {},
  async (tab) => {
    const row = tab.locator("#jobs tbody tr", { hasText: "bench tiny" });
    await row.waitFor();
    await open.end();
    again = await serve(env, ["--allow-exec"], open.address.host);
    await tab.evaluate(() => dispatchEvent(new KeyboardEvent("keydown", { key: "g" })));
    await tab.locator(".away", { hasText: "started again, and lets nobody in" }).waitFor();
    await openAgain(tab, again);
    await tab.locator(".away").waitFor({ state: "hidden" });
    assert.ok(await tab.locator("h1").isVisible(), "the page stayed, and goes on");
  },
  /401|ERR_CONNECTION_REFUSED/,
);
await again.end();

await browser.close();
console.log(
  `${shown(folder)}${passed} passed, 0 failed${left.map((l) => `\nleft out: ${l}`).join("")}`,
);
