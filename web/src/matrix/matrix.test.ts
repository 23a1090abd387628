import { describe, expect, test } from "vitest";
import seed from "../../../testdata/matrix/seed.page.json";
import { mix, readable } from "../draw/svg";
import { Model, type Packed } from "./model";
import { grouped, inRow, present, split, spot, varied } from "./panels";
import { figureTitle, filtered, first, kept, read, written } from "./state";
import { inCells } from "./views/header";
import { logTicks, times } from "./views/ratios";
import { nearest } from "./views/picture";
import { stretch } from "./views/scaling";

const packed = seed as unknown as Packed;
const model = new Model(packed),
  start = first(model, false);
const cell = (...words: string[]) =>
  model.cells.find((c) => words.every((w) => c.key.includes(`=${w}`)))!;

describe("model", () => {
  test("cells have their trials, and what became of them", () => {
    expect(model.cells.reduce((n, c) => n + c.trials.length, 0)).toBe(packed.trials.cell!.length);
    expect(cell("pytorch", "transformer6", "64", "train", "imagined:t4")).toMatchObject({
      outcome: "oom",
      reason: expect.stringContaining("did not fit"),
    });
    expect(cell("tensorflow", "lenet", "64", "train")).toMatchObject({
      outcome: "unmeasured",
      trials: [],
    });
    expect(model.title(cell("tensorflow", "lenet", "64", "train"))).toBe(
      "TensorFlow · LeNet · batch 64 · train · CPU",
    );
  });
  test("a trial's figures are read back from their columns", () => {
    const column = packed.trials.figures.pss!,
      trial = model.cells[packed.trials.cell![column.trial[0]!]!]!.trials[0]!,
      pss = model.summary(trial, "pss")!;
    expect(pss.max).toBe(column.max[0]! * 1024);
    expect(
      pss.min! < pss.median! && pss.median! < pss.max && pss.mean < pss.max && pss.std_dev! > 0,
    ).toBe(true);
    expect(model.summary(trial, "nothing")).toBeNull();
  });
  test("the comparison's interval stands by its own statistic alone", () => {
    const c = cell("pytorch", "resnet18", "32", "train", "cpu");
    const peak = model.value(c, "pss", "")!,
      mean = model.value(c, "pss", "mean")!;
    expect(peak.spread).toBe("interval");
    expect(peak.low < peak.value && peak.value < peak.high).toBe(true);
    expect(mean).toMatchObject({
      spread: "range",
      low: Math.min(...mean.each),
      high: Math.max(...mean.each),
    });
    expect(model.statistic("step_time", "")).toBe("median");
    expect(
      model.value(cell("pytorch", "transformer6", "64", "train", "imagined:t4"), "pss", ""),
    ).toBeNull();
  });
  test("memory is the host's of what computes there, the device's elsewhere", () => {
    expect(model.figureOf(cell("pytorch", "lenet", "16", "train", "cpu"), "memory")).toBe("pss");
    expect(model.figureOf(cell("pytorch", "lenet", "16", "train", "imagined:t4"), "memory")).toBe(
      "device_used",
    );
    expect(figureTitle(model, start)).toBe("Peak memory");
  });
});

describe("view", () => {
  test("what a reader who chose nothing sees", () =>
    expect(start).toMatchObject({
      figure: "memory",
      group: "model",
      colour: "framework",
      along: "batch",
      rows: "model",
      columns: "batch",
    }));
  test("an address holds all of it, and only what differs", () => {
    expect(written(start, start)).toBe("");
    const view = {
      ...start,
      figure: "rss",
      only: { framework: ["pytorch"], device: ["cpu", "imagined:t4"] },
      state: ["oom", "done"] as const,
      cell: model.cells[5]!.key,
      far: true,
      panels: "none",
      statistic: "min" as const,
      order: "rss",
      up: true,
      at: "heat",
    };
    expect(read(`#${written(view, start)}`, start, model)).toEqual(view);
  });
  test("what the matrix does not have is left out of an address", () =>
    expect(
      read(
        "#figure=nothing&only.framework=jax&only.model=lenet" +
          "&state=odd&group=nowhere&cell=x&at=%3Cb%3E",
        start,
        model,
      ),
    ).toEqual({ ...start, only: { model: ["lenet"] } }));
  test("filters", () => {
    const view = { only: { framework: ["tensorflow"], batch: ["64"] }, state: [] };
    expect(kept(model, view)).toHaveLength(6);
    expect(kept(model, view, "framework")).toHaveLength(18);
    expect(kept(model, { ...view, state: ["failed"] }).map((c) => c.key)).toEqual([
      cell("tensorflow", "resnet18", "64", "inference").key,
    ]);
    expect(filtered(model, { ...view, state: ["oom"] })).toBe(
      "framework TensorFlow · batch 64 · state out of memory",
    );
  });
});

describe("panels", () => {
  const axes = (...names: string[]) => names.map((n) => model.axis(n));
  test("every cell is in one panel, by as many axes as there is room for", () => {
    const all = split(model, model.cells, axes("model", "framework"), "", 12);
    expect(all.panels.flatMap((p) => p.cells)).toHaveLength(model.cells.length);
    expect(all.panels).toHaveLength(12);
    expect(all.merged).toEqual([]);
    expect(all.panels[0]!.title).toBe("batch 16 · inference · CPU");
    const few = split(model, model.cells, axes("model", "framework"), "", 6);
    expect([few.panels.length, few.merged]).toEqual([6, axes("mode")]);
    expect(split(model, model.cells, axes("model"), "none", 12)).toMatchObject({
      panels: [{ title: "" }],
      merged: axes("framework", "batch", "mode", "device"),
    });
    expect(split(model, model.cells, axes("model"), "mode", 12).panels.map((p) => p.title)).toEqual(
      ["inference", "train"],
    );
  });
  test("rows of panels hold what belongs together, or are alike", () => {
    const row = (n: number, inner: number, room: number) =>
      inRow({ panels: Array.from({ length: n }, () => ({ title: "", cells: [] })), inner }, room);
    expect([
      row(6, 1, 4.9),
      row(18, 3, 4.9),
      row(18, 3, 2.5),
      row(12, 2, 5),
      row(1, 1, 3),
      row(5, 1, 0.4),
      row(7, 1, 3.5),
    ]).toEqual([3, 3, 2, 4, 1, 1, 3]);
  });
  test("axes that vary, values that are there", () => {
    const some = kept(model, { only: { framework: ["tensorflow"] }, state: [] });
    expect(varied(model, some)).toEqual(axes("model", "batch", "mode"));
    expect(present(some, model.axis("batch"))).toEqual([0, 1, 2]);
    expect([...grouped(some, axes("mode")).values()].map((c) => c.length)).toEqual([9, 9]);
  });
  test("several cells in one place are their mean, from the lowest to the highest", () => {
    const two = [
        cell("pytorch", "lenet", "16", "train", "cpu"),
        cell("pytorch", "lenet", "64", "train", "cpu"),
      ],
      values = two.map((c) => model.value(c, "pss", "")!.value);
    expect(spot(model, two, "pss", "")).toEqual({
      value: (values[0]! + values[1]!) / 2,
      low: Math.min(...values),
      high: Math.max(...values),
      each: values,
    });
    expect(spot(model, [cell("tensorflow", "lenet", "64", "train")], "pss", "")).toBeNull();
  });
});

describe("drawing", () => {
  test("a line goes on straight beyond what was computed, its band does not", () => {
    const curve = {
      x: [0, 10, 20],
      fit: [100, 110, 120],
      low: [90, 100, 110],
      high: [110, 120, 130],
    };
    expect(stretch(curve, 5, 15)).toEqual([
      { x: 5, fit: 105, low: 95, high: 115 },
      { x: 10, fit: 110, low: 100, high: 120 },
      { x: 15, fit: 115, low: 105, high: 125 },
    ]);
    expect(stretch(curve, 15, 40).map((p) => [p.x, p.fit, p.low])).toEqual([
      [15, 115, 105],
      [20, 120, 110],
      [40, 140, undefined],
    ]);
  });
  test("arrows find the next mark in their direction", () => {
    const all: [string, { x: number; y: number }][] = [
      ["a", { x: 0, y: 0 }],
      ["b", { x: 10, y: 1 }],
      ["c", { x: 8, y: 30 }],
      ["d", { x: 0, y: 20 }],
    ];
    expect(nearest(all[0]![1], all, [1, 0])).toBe("b");
    expect(nearest(all[0]![1], all, [0, 1])).toBe("d");
    expect(nearest(all[0]![1], all, [-1, 0])).toBeNull();
  });
  test("a figure that one cell has is not said of all", () => {
    expect(
      [
        [4, 4],
        [1, 12],
        [3, 12],
        [1, 1],
      ].map(([known, all]) => inCells(known!, all!)),
    ).toEqual([
      "in every cell",
      "in the one cell that has it",
      "in each of the 3 cells that have it",
      "in every cell",
    ]);
  });
  test("ratios", () => {
    expect([1.25, 12.34, 123.4, 0.05].map(times)).toEqual(["× 1.25", "× 12.3", "× 123", "× 0.050"]);
    for (const [low, high, parts] of [
      [0.9, 1.3, 8],
      [0.3, 12, 10],
      [0.001, 5000, 6],
      [0.999, 1.001, 5],
    ] as const) {
      const found = logTicks(low, high, parts);
      expect(found).toContain(1);
      found
        .slice(1)
        .forEach((v, i) =>
          expect(Math.log(v / found[i]!)).toBeGreaterThanOrEqual(
            Math.log(high / low) / parts - 1e-9,
          ),
        );
    }
  });
  test("colours", () => {
    expect(mix("#000000", "#ffffff", 0.5)).toBe("#808080");
    expect([readable("#ffffff", "dark", "light"), readable("#0a66c2", "dark", "light")]).toEqual([
      "dark",
      "light",
    ]);
  });
});
