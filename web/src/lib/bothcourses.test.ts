import { expect, test } from "vitest";
import type { Report } from "../api";
import { courses, inSteps } from "./bothcourses";

const report = (more: object): Report =>
  ({
    series: [],
    steps: [],
    phases: [],
    marks: [],
    tables: [],
    allocators: [],
    headline: { duration_ns: 10, peak: {} },
    processes: [],
    run: { host: {} },
    ...more,
  }) as unknown as Report;

test("a curve over time becomes one over steps, between two steps in proportion", () => {
  const r = report({
    steps: [
      [1, 100],
      [2, 200],
      [3, 400],
    ].map(([step, time_ns]) => ({ process: 1, step, time_ns })),
  });
  expect(
    inSteps(r, { title: "RSS", x: [0, 100, 150, 300, 400, 900], y: [1, 2, 3, 4, 5, 6] }),
  ).toEqual({ title: "RSS", x: [0, 1, 1.5, 2.5, 3], y: [1, 2, 3, 4, 5] });
  expect(inSteps(report({}), { title: "RSS", x: [0, 1], y: [1, 2] })).toBeNull();
});

test("snapshots lie over each other by event, on their fullest devices", () => {
  const of = (peak: number) => ({
    device: peak,
    file: "f",
    events: 3,
    label: "measured",
    peak: { allocated_bytes: peak },
    timeline: {
      events: [0, 1, 2],
      by_site: [],
      by_category: [
        { name: "a", bytes: [1, 2, 3] },
        { name: "b", bytes: [10, peak, 30] },
      ],
    },
  });
  const [only, ...rest] = courses(
    report({ allocators: [of(5), of(20)] }),
    report({ allocators: [of(7)] }),
  );
  expect(rest).toEqual([]);
  expect(only).toMatchObject({
    along: "event",
    before: { title: "allocated on device 20", y: [11, 22, 33] },
    after: { y: [11, 9, 33] },
  });
  expect(courses(report({}), report({}))).toEqual([]);
});

test("imagined runs are compared by step first: their time is not the program's", () => {
  const series = [
      {
        name: "device.used",
        title: "used",
        unit: "bytes",
        x_unit: "ns",
        label: "imagined",
        process: 0,
        x: [0, 100, 200],
        y: [1, 2, 3],
      },
    ],
    steps = [
      [1, 50],
      [2, 200],
    ].map(([step, time_ns]) => ({ process: 1, step, time_ns }));
  const run = (more: object) =>
    report({ series, steps, headline: { duration_ns: 200, peak: {} }, ...more });
  expect(courses(run({}), run({})).map((c) => c.along)).toEqual(["time", "step"]);
  expect(courses(run({ imagined: {} }), run({ imagined: {} })).map((c) => c.along)).toEqual([
    "step",
    "time",
  ]);
});
