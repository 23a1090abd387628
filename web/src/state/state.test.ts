import { describe, expect, test } from "vitest";
import text from "../../../testdata/runs/leak.report.json?raw";
import type { Report, Series } from "../api";
import { curves } from "./curves";
import { choices, complete, leader, processName, span } from "./report";
import { none, standing, toggle, undoing } from "./selection";
import { branch, store } from "./store";

const leak = complete(JSON.parse(text) as Report);
const series = (
  name: string,
  process: number,
  peak: number,
  more: Partial<Series> = {},
): Series => ({
  name,
  title: name,
  process,
  unit: "bytes",
  label: "measured",
  x_unit: "ns",
  x: [0, 1e9],
  y: [peak / 2, peak],
  ...more,
});
const empty = complete({
  version: 1,
  run: { host: { cpus: 0 } },
  headline: { verdict: "", duration_ns: 0, steps: 0, complete: false, peak: { label: "" } },
} as unknown as Report);
const keys = (report: Report, process: number, on = true) =>
  curves(report, process)
    .filter((c) => c.on === on)
    .map((c) => c.key);

describe("report", () => {
  test("an empty report has every list and a span", () => {
    expect([empty.findings, empty.tables, empty.series, empty.notes]).toEqual([[], [], [], []]);
    expect(span(empty)).toEqual([0, 1]);
    expect(leader(empty, 0)).toBe(0);
    expect(curves(empty, 0)).toEqual([]);
  });
  test("names tell processes apart", () => {
    expect(leak.processes.map((p) => processName(p, leak.processes))).toEqual([
      "main",
      "dataloader · pid 4252",
      "dataloader · pid 4253",
    ]);
    expect(choices(leak)[0]?.id).toBe(leak.headline.peak.process);
    expect(leader(leak, 0)).toBe(1);
    expect(leader(leak, 3)).toBe(3);
  });
});

describe("curves", () => {
  test("the leading curve comes first and is on", () => {
    const [first] = curves(leak, 0);
    expect(first?.key).toBe(`${leak.headline.main_source}/0/`);
    expect(first?.on).toBe(true);
  });
  test("a process has its own curves", () => {
    expect(curves(leak, 2).every((c) => c.limit || /\/(2|0)\//.test(c.key))).toBe(true);
    expect(keys(leak, 2)).toContain("host.rss/2/");
  });
  test("without figures of the tree every process has a curve, in colours of their own", () => {
    const report = {
      ...empty,
      series: [series("host.rss", 1, 10), series("host.rss", 2, 20), series("host.rss", 3, 5)],
    };
    expect(keys(report, 0)).toHaveLength(3);
    expect(new Set(curves(report, 0).map((c) => c.colour)).size).toBe(3);
  });
  test("a limit is on where memory comes near it", () => {
    const at = (memory_bytes: number) =>
      keys(
        {
          ...empty,
          series: [series("tree.rss", 0, 100)],
          run: { ...empty.run, host: { ...empty.run.host, cpus: 1, memory_bytes } },
        },
        0,
      );
    expect(at(200)).toContain("limit/host");
    expect(at(100_000)).not.toContain("limit/host");
    expect(
      keys(
        {
          ...empty,
          series: [series("device.used", 0, 90, { device: "cuda:0" })],
          run: {
            ...empty.run,
            host: {
              ...empty.run.host,
              memory_bytes: 100,
              gpus: [{ index: 0, vendor: "nvidia", name: "A10", memory_bytes: 100 }],
            },
          },
        },
        0,
      ),
    ).toEqual(["device.used/0/cuda:0", "limit/A10"]);
  });
});

test("a store calls those that follow what changed", () => {
  const calls: string[] = [],
    s = store({ a: 1, b: 1 });
  s.follow(["a"], ({ a }) => calls.push(`a${a}`));
  s.follow(["a", "b"], ({ b }) => calls.push(`b${b}`));
  s.set({ b: 2 });
  s.set({ a: 1 });
  expect(calls).toEqual(["a1", "b1", "b2"]);
});

test("what follows by a branch ends with it, also while a change is told", () => {
  const calls: string[] = [],
    s = store({ a: 1 }),
    page = branch(s);
  s.follow(["a"], ({ a }) => {
    if (a === 3) page.close();
  });
  page.follow(["a"], ({ a }) => calls.push(`page ${a}`));
  page.set({ a: 2 });
  s.set({ a: 3 });
  s.set({ a: 4 });
  expect(calls).toEqual(["page 1", "page 2"]);
  expect(page.get().a).toBe(4);
});

test("a branch of a branch that has ended is held by neither", () => {
  let ended = 0;
  const s = store({ a: 1 }),
    page = branch({
      ...s,
      follow: () => () => {
        ended++;
      },
    }),
    panel = branch(page);
  panel.follow(["a"], () => {});
  panel.close();
  page.close();
  expect(ended).toBe(1); // held, it would be ended once more
});

test("a thing is picked by what is known of it, dim if it is something else, else neither", () => {
  const of = { ...none, line: "a.py:1", phase: "forward" };
  expect(standing(none, { line: "a.py:1" })).toBe("");
  expect(standing(of, { line: "a.py:1" })).toBe("picked");
  expect(standing(of, { line: "a.py:1", phase: "" })).toBe("dim");
  expect(standing(of, { module: "conv1" })).toBe("");
  expect(standing({ ...none, process: 2 }, { process: 1 })).toBe("dim");
  expect(standing({ ...none, search: "CONV" }, { words: "conv1 of Net" })).toBe("picked");
  expect(standing({ ...none, search: "(" }, { words: "anything" })).toBe("");
});

test("what is selected twice is not selected, and an undo goes back to each selection", () => {
  const page = store({ ...none }),
    undo = undoing(page);
  toggle(page, { phase: "forward" });
  toggle(page, { line: "a.py:1" });
  toggle(page, { phase: "forward" });
  expect(page.get()).toMatchObject({ phase: "", line: "a.py:1" });
  undo();
  expect(page.get()).toMatchObject({ phase: "forward", line: "a.py:1" });
  undo();
  undo();
  expect(page.get()).toEqual(none);
  expect(undo()).toBe(false);
});
