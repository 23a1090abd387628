// The page of a matrix in a real Chromium: filters, one selection, drill-down, keys, saved charts, small screens, print.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { shot } from "./kit.mjs";

/** A made-up matrix of the shape of a real one, as internal/matrix packs it (its html_test.go writes the file). */
const seed = JSON.parse(
  readFileSync(new URL("../../testdata/matrix/seed.page.json", import.meta.url), "utf8"),
);
const key = (framework, model, batch, mode, device) =>
  `framework=${framework} model=${model} batch=${batch} mode=${mode} device=${device}`;
const chosen = key("pytorch", "resnet18", 32, "train", "cpu"),
  oom = key("pytorch", "transformer6", 64, "train", "imagined:t4");
const markup = "</script><img src=x onerror=alert(1)>";

/** A chart's marks, by what they are read as. */
const marks = (tab, chart, text) =>
  tab.locator(`#${chart} .mark${text ? `[aria-label*="${text}"]` : ""}`);
const state = (tab) =>
  tab.evaluate(
    () =>
      new URLSearchParams(location.hash.slice(1)).getAll("only.framework").join() +
      (new URLSearchParams(location.hash.slice(1)).get("figure") ?? ""),
  );
const holes = async (tab) =>
  assert.ok(
    !/undefined|NaN|Infinity|\[object/.test(await tab.locator("body").innerText()),
    "no holes",
  );

async function saved(tab, folder, chart, kind) {
  const [file] = await Promise.all([
    tab.waitForEvent("download"),
    tab.locator(`#${chart} .saves button`, { hasText: kind }).click(),
  ]);
  const path = join(folder, file.suggestedFilename());
  await file.saveAs(path);
  return [file.suggestedFilename(), readFileSync(path)];
}

export async function matrices({ look, drawn, folder }) {
  await look("matrix", seed, { kind: "matrix" }, async (tab) => {
    await holes(tab);
    assert.match(await tab.locator("h1").innerText(), /^Peak memory: from \d+ MiB to [\d.]+ GiB/);
    assert.equal(
      await marks(tab, "bars").count(),
      seed.cells.length,
      "each cell has a bar or a sign: none is a hole",
    );
    assert.equal(await marks(tab, "heat").count(), seed.cells.length);
    assert.equal(await marks(tab, "bars", "out of memory").count(), 1);
    // a filter
    await tab
      .locator(".axis", { hasText: "framework" })
      .getByRole("button", { name: "TensorFlow" })
      .click();
    await drawn(tab);
    const left = seed.cells.filter((c) => c[0] === 1).length;
    for (const chart of ["bars", "heat"])
      assert.equal(await marks(tab, chart).count(), left, `${chart} obeys the filter`);
    assert.equal(
      (await tab.locator("#cells tbody tr").count()) <= 12 &&
        (await tab.locator("#cells tbody tr", { hasText: "PyTorch" }).count()),
      0,
      "so does the table",
    );
    assert.equal(await state(tab), "tensorflow", "the address holds the filter");
    assert.match(
      await tab.locator("#filters [role=status]").innerText(),
      new RegExp(`^${left} of ${seed.cells.length} cells`),
    );
    await tab.locator("#filters").getByRole("button", { name: "Show all" }).click();
    // the figure
    await tab.locator("#filters").getByLabel("Figure", { exact: true }).selectOption("rss");
    await drawn(tab);
    assert.equal(await state(tab), "rss");
    assert.match(
      await marks(tab, "bars", "ResNet-18 · batch 32 · train · CPU")
        .first()
        .getAttribute("aria-label"),
      /Peak RSS: [\d.]+ [MG]iB, 95 % interval .* 3 trials/,
    );
    // one selection that every part obeys
    const bar = tab.locator(
      `#bars .mark[aria-label^="PyTorch · ResNet-18 · batch 32 · train · CPU"]`,
    );
    await bar.click();
    for (const chart of ["bars", "scaling", "heat"])
      assert.equal(
        await tab.locator(`#${chart} .mark[aria-pressed=true]`).count(),
        1,
        `${chart} shows the choice`,
      );
    assert.equal(
      await tab.locator("#cell h2").innerText(),
      "PyTorch · ResNet-18 · batch 32 · train · CPU",
    );
    const runs = seed.trials.run.filter((_, i) => seed.keys[seed.trials.cell[i]] === chosen);
    assert.equal(runs.length, 3);
    assert.deepEqual(
      await tab.locator("#cell .trials .command code").allInnerTexts(),
      runs.map((r) => `hightide show ${r}`),
    );
    assert.equal(await tab.locator("#cell a.report").count(), 0);
    assert.ok(
      (await tab.locator("#cell .neighbours li").count()) >= 6,
      "it stands beside its neighbours",
    );
    await tab.keyboard.press("Escape");
    assert.ok(!(await tab.locator("#cell").isVisible()));
    assert.ok(
      (await tab.locator("#baseline tbody tr", { hasText: "ResNet-18" }).count()) > 0 &&
        /\d+ worse/.test(await tab.locator("#baseline .what").innerText()),
      "the baseline is beside it",
    );
    // keys
    await tab.locator("#heat .mark[tabindex='0']").focus();
    await tab.mouse.move(0, 0);
    await tab.keyboard.press("i");
    assert.match(
      await tab.locator(".lesson").innerText(),
      /two axes[\s\S]*Good[\s\S]*Bad/,
      "the chart that has the focus explains itself",
    );
    await tab.keyboard.press("Escape");
    assert.equal(await tab.locator(".lesson").count(), 0);
    await tab.locator("#heat .mark[tabindex='0']").focus();
    const before = await tab.evaluate(() => document.activeElement.getAttribute("aria-label"));
    await tab.keyboard.press("ArrowRight");
    const after = await tab.evaluate(() => document.activeElement.getAttribute("aria-label"));
    assert.ok(before !== after && after, `an arrow moves: ${before}`);
    await tab.keyboard.press("Enter");
    assert.equal(await tab.locator("#cell h2").innerText(), after.split(",")[0]);
    await tab.keyboard.press("Escape");
    assert.equal(
      await tab.evaluate(() => document.activeElement.getAttribute("aria-label")),
      after,
      "the focus goes back to where it was",
    );
    // a sort, and a choice in the table
    await tab.locator("#cells th button", { hasText: "Peak RSS" }).click();
    await tab.locator("#cells .pick").first().click();
    assert.equal(await tab.locator("#cells tr.picked").count(), 1);
    assert.equal(await tab.locator("#bars .mark[aria-pressed=true]").count(), 1);
    await tab.keyboard.press("Escape");
  });

  const linked = Object.keys(seed.reports)[0],
    of = seed.keys[seed.trials.cell[seed.trials.run.indexOf(linked)]];
  await look(
    "matrix-linked",
    { ...seed, reports: { ...seed.reports, [seed.trials.run[1]]: "javascript:alert(1)" } },
    { kind: "matrix", hash: `cell=${encodeURIComponent(of)}` },
    async (tab) => {
      assert.deepEqual(
        await tab
          .locator("#cell a.report")
          .evaluateAll((all) => all.map((a) => a.getAttribute("href"))),
        [seed.reports[linked]],
        "a trial's report is a link, a program is none",
      );
      await tab.keyboard.press("Escape");
    },
  );

  await look("matrix-saved", seed, { kind: "matrix", scheme: "dark" }, async (tab) => {
    for (const chart of ["bars", "scaling", "heat", "ratios"]) {
      const [name, bytes] = await saved(tab, folder, chart, "SVG"),
        text = bytes.toString();
      assert.match(name, new RegExp(`^seed-${chart}-memory.svg$`));
      const told = await tab.evaluate((text) => {
        const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
        return {
          errors: parsed.querySelectorAll("parsererror").length,
          title: parsed.querySelector("title").textContent,
          marks: parsed.querySelectorAll("rect, circle").length,
        };
      }, text);
      assert.ok(
        told.errors === 0 && told.title.startsWith("seed: ") && told.marks > 20,
        `${chart} is a picture: ${JSON.stringify(told)}`,
      );
      assert.ok(!/var\(--|href=|url\(/.test(text), "it needs nothing else");
    }
    const [name, png] = await saved(tab, folder, "heat", "PNG");
    assert.equal(name, "seed-heat-memory.png");
    assert.ok(
      png.subarray(1, 4).toString() === "PNG" && png.readUInt32BE(16) > 1500,
      "a picture of twice the size",
    );
  });

  const hash = `only.model=resnet18&only.mode=train&figure=pss&far=1&colour=framework&cell=${encodeURIComponent(chosen)}&nonsense=1&group=nothere`;
  await look("matrix-narrow", seed, { kind: "matrix", width: 400, hash }, async (tab) => {
    await holes(tab);
    assert.equal(
      await tab.locator("#cell h2").innerText(),
      "PyTorch · ResNet-18 · batch 32 · train · CPU",
      "an address opens where it was",
    );
    assert.ok((await tab.locator("#cell").boundingBox()).width <= 400);
    await shot(tab, join(folder, "matrix-narrow-cell.png"));
    await tab.keyboard.press("Escape");
    assert.equal(await tab.locator(".chip[aria-pressed=true]").count(), 2);
    assert.ok(
      await tab
        .locator("#scaling svg")
        .textContent()
        .then((t) => / in 24.0 GiB/.test(t)),
      "the curve goes on to the limit",
    );
    const wide = await tab.evaluate(() =>
      [...document.querySelectorAll(".picture svg")].map((s) => s.clientWidth),
    );
    assert.ok(
      wide.length >= 4 && wide.every((w) => w > 250 && w < 400),
      `charts fit the screen: ${wide}`,
    );
  });

  await look(
    "matrix-printed",
    seed,
    { kind: "matrix", scheme: "dark", hash: `cell=${encodeURIComponent(oom)}` },
    async (tab, name) => {
      assert.match(
        await tab.locator("#cell").innerText(),
        /out of memory[\s\S]*2\.25 GiB more did not fit/,
        "a cell that failed says why",
      );
      const pdf = await tab.pdf({
        path: join(folder, `${name}.pdf`),
        format: "A4",
        printBackground: true,
      });
      assert.ok(pdf.length > 50_000, "the print has pictures");
      await tab.keyboard.press("Escape");
    },
  );

  const hostile = JSON.parse(
    JSON.stringify({
      ...seed,
      name: markup,
      spec: markup,
      trials: { ...seed.trials, reason: seed.trials.reason.map(() => markup) },
    }),
  );
  Object.assign(hostile.axes[1], {
    name: "model",
    values: [markup, "resnet18", "x".repeat(300)],
    labels: undefined,
  });
  await look("matrix-hostile", hostile, { kind: "matrix", width: 700 }, async (tab) => {
    assert.equal(await tab.locator("img").count(), 0, "texts stay texts");
    await marks(tab, "bars").first().click();
    assert.equal(await tab.locator("img").count(), 0);
    await tab.keyboard.press("Escape");
  });

  const alone = {
    ...seed,
    keys: seed.keys.slice(0, 1),
    cells: seed.cells.slice(0, 1),
    axes: seed.axes.map((a, i) => ({
      ...a,
      values: [a.values[seed.cells[0][i]]],
      labels: undefined,
    })),
    comparison: undefined,
    trials: {
      cell: null,
      repeat: null,
      state: null,
      reason: null,
      run: null,
      machine: null,
      start_ms: null,
      duration_ms: null,
      figures: {},
    },
  };
  alone.cells = [seed.cells[0].map(() => 0)];
  await look("matrix-empty", alone, { kind: "matrix" }, async (tab) => {
    await holes(tab);
    assert.equal(await tab.locator("h1").innerText(), "No cell has been measured.");
    assert.equal(
      await marks(tab, "bars", "not measured yet").count(),
      1,
      "what was not measured is there too",
    );
  });
}
