import { describe, expect, test } from "vitest";
import {
  fold,
  functions,
  grow,
  inverted,
  matched,
  ordered,
  sandwich,
  unfold,
  type Call,
} from "./icicle";
import { called, exclusive, phaseNames, shares, stripped } from "./phases";
import { fromZero, inside, moment, secondSteps, ticks } from "./scales";
import { treemap } from "./treemap";

const stay = (phase: string, from: number, to: number) => ({ phase, from, to });
const of = (phase: string) => phaseNames.indexOf(phase as "data");

describe("phases", () => {
  test("an inner stay takes its time from the outer one", () => {
    expect(
      exclusive([stay("evaluation", 0, 100), stay("forward", 20, 30), stay("forward", 40, 50)]),
    ).toEqual([
      stay("evaluation", 0, 20),
      stay("forward", 20, 30),
      stay("evaluation", 30, 40),
      stay("forward", 40, 50),
      stay("evaluation", 50, 100),
    ]);
  });
  test("a span keeps the name that the program gave it", () => {
    const pieces = exclusive([
      { ...stay("user", 0, 100), name: "encode" },
      stay("forward", 20, 30),
    ]);
    expect(pieces.map(called)).toEqual(["encode", "forward", "encode"]);
  });
  test("no time is counted twice, whatever overlaps", () => {
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const stays = Array.from({ length: 300 }, () => {
      const a = Math.floor(random() * 1000);
      return stay(phaseNames[Math.floor(random() * 7)]!, a, a + Math.floor(random() * 80));
    });
    const pieces = exclusive(stays);
    pieces.slice(1).forEach((p, i) => expect(p.from).toBeGreaterThanOrEqual(pieces[i]!.to));
    const covered = new Set(
      stays.flatMap((s) => Array.from({ length: s.to - s.from }, (_, i) => s.from + i)),
    );
    expect(pieces.reduce((n, p) => n + p.to - p.from, 0)).toBe(covered.size);
  });
  test("shares of a column add up to one, or to nothing where nothing is known", () => {
    const columns = shares(
      [stay("data", 0, 25), stay("forward", 25, 100), stay("backward", 200, 210)],
      0,
      400,
      4,
    );
    expect(columns.map((c) => c.reduce((a, b) => a + b, 0))).toEqual([1, 0, 1, 0]);
    expect(columns[0]![of("data")]).toBe(0.25);
    expect(columns[2]![of("backward")]).toBe(1);
    expect(shares([stay("data", 0, 5)], 5, 5, 3).every((c) => c.every((v) => v === 0))).toBe(true);
  });
  test("steps and modules do not hide the phases", () =>
    expect(stripped([stay("step", 0, 9), stay("module", 1, 2), stay("data", 0, 1)])).toHaveLength(
      1,
    ));
});

describe("flames", () => {
  const call = (frame: number, value: number, ...children: Call[]): Call => ({
    frame,
    value,
    blocks: 1,
    children,
  });
  const native = (c: Call) => c.frame >= 100;
  const shape = (c: Call): unknown => [c.frame, c.folded ?? 0, ...c.children.map(shape)];
  test("runs of native calls are one, which unfolds", () => {
    const tree = call(
      1,
      9,
      call(100, 7, call(101, 6, call(2, 4, call(103, 4, call(104, 4))), call(102, 2)), call(3, 1)),
      call(105, 2, call(4, 2)),
    );
    const folded = fold(tree, native);
    expect(shape(folded)).toEqual([1, 0, [100, 3, [2, 0, [103, 2]], [3, 0]], [105, 0, [4, 0]]]);
    unfold(folded.children[0]!, native);
    expect(shape(folded)).toEqual([
      1,
      0,
      [100, 0, [101, 0, [2, 0, [103, 2]], [102, 0]], [3, 0]],
      [105, 0, [4, 0]],
    ]);
    expect(tree.children[0]!.children).toHaveLength(2);
  });
  // main(0) calls f(1) and g(2); both call alloc(3), f calls itself and is called by g as well
  const frames = ["main", "f", "g", "alloc"].map((name) => ({
    file: "a.py",
    line: 1,
    function: name,
  }));
  const set = {
    name: "device",
    title: "",
    label: "measured" as const,
    total_bytes: 100,
    frames,
    parents: [-1, 0, 1, 1, 3, 0, 5, 5, 7],
    places: [0, 1, 3, 1, 3, 2, 3, 1, 3],
    stacks: [
      { node: 2, bytes: 10, count: 1, first: 9 },
      { node: 4, bytes: 20, count: 2, first: 4 },
      { node: 6, bytes: 30, count: 3, first: 2 },
      { node: 8, bytes: 40, count: 4, first: 7 },
    ],
  };
  const root = grow(set, "bytes");
  const values = (c: Call): unknown => [c.frame, c.value, ...c.children.map(values)];
  test("all of a tree is below its root, whichever way it is turned", () => {
    expect([root.value, root.blocks, root.first]).toEqual([100, 10, 2]);
    expect(values(inverted(root))).toEqual([
      -1,
      100,
      [3, 100, [1, 70, [2, 40, [0, 40]], [1, 20, [0, 20]], [0, 10]], [2, 30, [0, 30]]],
    ]);
    expect(inverted(root).children[0]!.blocks).toBe(10);
  });
  test("calls beneath are left out, where a caller is not", () =>
    expect(values(inverted(root, (c) => c.frame === 3))).toEqual([
      -1,
      100,
      [1, 70, [2, 40, [0, 40]], [1, 20, [0, 20]], [0, 10]],
      [2, 30, [0, 30]],
    ]));
  test("calls stand as they were made, or the largest first", () => {
    expect(ordered(root, "largest").children[0]!.children.map((c) => c.frame)).toEqual([2, 1]);
    expect(ordered(root, "calls").children[0]!.children.map((c) => [c.frame, c.first])).toEqual([
      [2, 2],
      [1, 4],
    ]);
    expect(ordered(root, "calls").children[0]!.children[1]!.children.map((c) => c.frame)).toEqual([
      1, 3,
    ]);
  });
  test("a function has what it allocates itself, and once what it has with its callees", () => {
    expect(
      functions(root, (f) => frames[f]!.function).map((s) => [s.frame, s.own, s.value]),
    ).toEqual([
      [3, 100, 100],
      [0, 0, 100],
      [2, 0, 70],
      [1, 0, 70],
    ]);
    expect(
      functions(
        grow({ ...set, stacks: [...set.stacks, { node: 1, bytes: 5, count: 1 }] }, "bytes"),
        (f) => frames[f]!.function,
      )[1],
    ).toEqual({ frame: 1, own: 5, value: 75 });
  });
  test("one function has its callers and callees, and counts once where it calls itself", () => {
    const { callers, callees } = sandwich(root, (f) => f === 1);
    expect(values(callees)).toEqual([1, 70, [3, 50], [1, 20, [3, 20]]]);
    expect(values(callers)).toEqual([1, 70, [2, 40, [0, 40]], [0, 30]]);
    expect(sandwich(root, (f) => f === 9).callers.value).toBe(0);
  });
  test("what matches counts once", () => {
    expect(matched(root, (c) => c.frame === 1)).toBe(70);
    expect(matched(root, (c) => c.frame === 3)).toBe(100);
    expect(matched(root, () => false)).toBe(0);
  });
});

describe("scales", () => {
  test.each([
    [0, 10, "0 s"],
    [45, 15, "45 s"],
    [0.25, 0.05, "0.25 s"],
    [0.0125, 0.0005, "12.5 ms"],
    [2e-7, 1e-8, "0.20 µs"],
    [90, 30, "1:30"],
    [60, 60, "1:00"],
    [7325, 5, "2:02:05"],
    [61.5, 0.5, "1:01.50"],
  ])("moment %d of steps of %d", (s, step, want) => expect(moment(s, step)).toBe(want));
  test("steps ascend and are exact", () => {
    secondSteps.slice(1).forEach((s, i) => expect(s).toBeGreaterThan(secondSteps[i]!));
    expect(secondSteps).toContain(1e-8);
  });
  test.each([
    ["bytes", 7 * 2 ** 30, [0, 2, 4, 6].map((v) => v * 2 ** 30)],
    ["ns", 0.9e9, [0, 2e8, 4e8, 6e8, 8e8]],
    ["count", 240, [0, 50, 100, 150, 200]],
    ["milli", 0, [0]],
  ] as const)("ticks in %s", (unit, top, want) => expect(ticks(top, unit, 5)).toEqual(want));
  test("an axis begins at zero, unless something lies below", () => {
    expect(fromZero(5, 100)[0]).toBe(0);
    expect(fromZero(-10, 100)[0]).toBeLessThan(-10);
    expect(fromZero(null, null)).toEqual([0, 1]);
    expect(fromZero(0, 0)).toEqual([0, 1]);
  });
  test("a window stays inside", () => {
    expect(inside([-10, 20], [0, 100], 5)).toEqual([0, 30]);
    expect(inside([90, 130], [0, 100], 5)).toEqual([60, 100]);
    expect(inside([50, 50], [0, 100], 5)).toEqual([50, 55]);
    expect(inside([-50, 500], [0, 100], 5)).toEqual([0, 100]);
  });
});

describe("treemap", () => {
  test("areas are as the sizes, and nothing overlaps or sticks out", () => {
    const sizes = [600, 300, 120, 60, 30, 20, 5, 0, -3],
      boxes = treemap(sizes, (s) => s, 400, 300);
    const total = sizes.filter((s) => s > 0).reduce((a, b) => a + b, 0);
    expect(boxes).toHaveLength(7);
    for (const b of boxes) {
      expect((b.w * b.h) / (400 * 300)).toBeCloseTo(b.item / total, 6);
      expect(b.x + b.w).toBeLessThanOrEqual(400.001);
      expect(b.y + b.h).toBeLessThanOrEqual(300.001);
      for (const o of boxes)
        if (o !== b)
          expect(
            Math.min(b.x + b.w, o.x + o.w) - Math.max(b.x, o.x) > 0.001 &&
              Math.min(b.y + b.h, o.y + o.h) - Math.max(b.y, o.y) > 0.001,
          ).toBe(false);
    }
  });
  test("nothing gives nothing", () => {
    expect(treemap([], Number, 10, 10)).toEqual([]);
    expect(treemap([0], Number, 10, 10)).toEqual([]);
  });
});
