import { describe, expect, test } from "vitest";
import text from "../../../testdata/runs/leak.report.json?raw";
import type { Report } from "../api";
import { complete } from "../state/report";
import { layoutOf, paramsOf, plain } from "./layout";
import { following, panned, seen, zoomed } from "./look";
import { groupsOf, tracksOf } from "./model";
import { axisText } from "./paint";
import { phasesWithin } from "./range";
import { figures, highestIn, Readings } from "./readings";
import { reportSource } from "./source";

const ramp = (n: number, from = 0) => ({
  x: Array.from({ length: n }, (_, i) => from + i),
  y: Array.from({ length: n }, (_, i) => from + i),
});

describe("readings", () => {
  test("what comes twice is there once, and what came while the past was fetched stays", () => {
    const r = new Readings(false);
    r.append({ x: [5, 6], y: [50, 60] });
    r.replace({ x: [1, 3, 5], y: [10, 30, 50] }, true);
    r.append({ x: [5, 6, 7], y: [50, 60, 70] });
    expect(r.shown).toEqual({ x: [1, 3, 5, 6, 7], y: [10, 30, 50, 60, 70] });
  });
  test("a counter is what it gained per second, also from the past to what comes", () => {
    const r = new Readings(true);
    r.replace({ x: [0, 1e9, 2e9], y: [0, 100, 300] }, false);
    r.append({ x: [2e9, 4e9, 5e9], y: [300, 500, 0] });
    expect(r.shown).toEqual({ x: [1e9, 2e9, 4e9, 5e9], y: [100, 200, 100, 0] });
  });
  test("a stretch is known finely after it was fetched, and what follows stays", () => {
    const r = new Readings(false);
    r.replace({ x: [0, 10, 20, 30], y: [0, 1, 2, 3] }, true);
    expect(r.wants([5, 15])).toBe(true);
    r.refine({ x: [5, 6, 7, 15], y: [9, 9, 9, 9] }, 5, 15);
    r.append({ x: [40], y: [4] });
    expect(r.shown).toEqual({ x: [0, 5, 6, 7, 15, 20, 30, 40], y: [0, 9, 9, 9, 9, 2, 3, 4] });
    expect([r.wants([5, 15]), r.wants([0, 15]), r.wants([31, 40])]).toEqual([false, true, false]);
  });
  test("an hour at ten readings a second keeps its lowest and highest", () => {
    const r = new Readings(false);
    for (let i = 0; i < 36_000; i++)
      r.append({ x: [i], y: [i === 777 ? 1e9 : i === 778 ? -1e9 : i] });
    expect(r.shown.x.length).toBeLessThanOrEqual(20_000);
    expect([Math.max(...r.shown.y), Math.min(...r.shown.y), r.shown.x.at(-1)]).toEqual([
      1e9, -1e9, 35_999,
    ]);
    expect(r.shown.x.every((t, i) => i === 0 || t > r.shown.x[i - 1]!)).toBe(true);
  });
  test("figures of a stretch are those of the line between its ends", () => {
    expect(figures(ramp(11), [2.5, 7.5])).toEqual({
      low: 2.5,
      high: 7.5,
      mean: 5,
      begin: 2.5,
      end: 7.5,
      readings: 5,
    });
    expect(figures({ x: [0, 1, 10], y: [0, 10, 10] }, [0, 10])?.mean).toBe(9.5);
    expect(figures(ramp(3), [5, 9])).toBeNull();
    expect([highestIn(ramp(11), [2, 4]), highestIn(ramp(3), [5, 9])]).toEqual([4, null]);
  });
});

describe("what is shown", () => {
  const whole = { window: null, last: 0 },
    end = 100e9;
  test("zooming keeps the moment under the pointer, and out of everything there is nothing", () => {
    const look = zoomed(whole, end, 25e9, 0.5),
      [from, to] = seen(look, end);
    expect([(25e9 - from) / (to - from), to - from]).toEqual([0.25, 50e9]);
    expect(zoomed(whole, end, 25e9, 2)).toEqual(whole);
  });
  test("the end is followed with as much as was shown, until a pan", () => {
    const look = following({ window: [10e9, 30e9], last: 0 }, end);
    expect(seen(look, end)).toEqual([80e9, 100e9]);
    expect(seen(look, 2 * end)).toEqual([180e9, 200e9]);
    expect(panned(look, end, -0.5)).toEqual({ window: [70e9, 90e9], last: 0 });
    expect(following(whole, end)).toEqual(whole);
  });
});

describe("tracks", () => {
  const source = reportSource(complete(JSON.parse(text) as Report)),
    all = tracksOf(source.curves, [...source.stays.keys()], true);
  test("what is read together is one track, of each process and device", () => {
    expect(all.slice(0, 3).map((t) => t.key)).toEqual(["events", "phases/1", "host/0"]);
    expect(all.find((t) => t.key === "host/0")?.curves.length).toBeGreaterThan(1);
    expect(all.find((t) => t.key === "host/1")?.curves.map((c) => c.name)).toEqual(["host.rss"]);
    expect(new Set(all.map((t) => t.key)).size).toBe(all.length);
  });
  test("the run and the process that leads are open, the others folded", () => {
    const groups = groupsOf(all, "process", source.processes, source.lead);
    expect(groups.map((g) => [g.title, g.open])).toEqual([
      ["The whole run", true],
      ["main", true],
      ["dataloader · pid 4252", false],
      ["dataloader · pid 4253", false],
    ]);
    expect(
      groupsOf(all, "quantity", source.processes, source.lead).find((g) => g.key === "host")?.tracks
        .length,
    ).toBe(4);
  });
  test("the phases in a stretch are shares of it", () => {
    const [of] = phasesWithin(source, [2e9, 4e9]);
    expect(of!.shares.map(([name]) => name)).toEqual(["data", "forward", "backward", "optimizer"]);
    expect(of!.shares.reduce((sum, [, share]) => sum + share, 0)).toBeCloseTo(1);
    expect(of!.steps).toBeGreaterThan(10);
  });
});

test("an address holds the layout, and leaves others' parameters alone", () => {
  const layout = {
    pins: ["host/1", "allocator/1/cuda:0 torch"],
    open: { run: false, "process-2": true },
    fit: true,
    last: 5e9,
    by: "quantity" as const,
    find: "rss",
  };
  expect(layoutOf(paramsOf(layout, { other: "x" }))).toEqual(layout);
  expect(paramsOf(plain, { other: "x", pin: "gone" })).toEqual({ other: "x" });
  expect(layoutOf({ last: "-5", by: "colour", axes: "?" })).toEqual(plain);
});

test("the figures of an axis tell its steps apart, however little a processor does", () => {
  const cpu = { family: "cpu", rate: true, unit: "ns" } as const;
  expect([0, 5e6, 1e7, 3e8, 2.5e9].map((v) => axisText(cpu, v))).toEqual([
    "0",
    "0.005",
    "0.01",
    "0.3",
    "2.5",
  ]);
});
