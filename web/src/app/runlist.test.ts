import { expect, test } from "vitest";
import type { Run } from "./api";
import { chosen, outcome, readTags, sortOf, tagsOf, when } from "./runlist";

const run = (id: string, more: Partial<Run> = {}): Run => ({ id, state: "finished", start_wall_ns: 1e18, duration_ns: 1e9, steps: 0, processes: 1, ooms: 0, size_bytes: 1, exit_code: 0, ...more });
const runs = [run("a", { name: "bert", peak_host_rss_bytes: 5, tags: { team: "nlp" }, start_wall_ns: 1 }), run("b", { command: ["python", "train.py"], exit_code: 1, start_wall_ns: 3 }),
  run("c", { state: "running", verb: "imagine", peak_device_used_bytes: 9, start_wall_ns: 2 })];
const ids = (asked: Partial<Parameters<typeof chosen>[1]>) => chosen(runs, { words: "", outcome: "", verb: "", tag: "", sort: "", ...asked }).map((r) => r.id).join("");

test("runs are found by words, outcome, verb and tag", () => {
  expect(ids({})).toBe("bca");
  expect(ids({ words: "TRAIN py" })).toBe("b");
  expect(ids({ words: "team=nlp" })).toBe("a");
  expect(ids({ outcome: "live" })).toBe("c");
  expect(ids({ outcome: "failed" })).toBe("b");
  expect(ids({ verb: "imagine" })).toBe("c");
  expect(ids({ tag: "team=nlp" })).toBe("a");
  expect(ids({ tag: "team" })).toBe("");
});

test("what has no figure stands last, either way round", () => {
  expect(ids({ sort: "peak" })).toBe("cab");
  expect(ids({ sort: "-peak" })).toBe("acb");
  expect(sortOf("nonsense")).toEqual({ name: "started", down: true });
});

test("a run that was stopped as asked did not fail", () => {
  expect(outcome(run("x", { signal: 15, stopped: true }))).toBe("done");
  expect(outcome(run("x", { signal: 9 }))).toBe("failed");
  expect(outcome(run("x", { ooms: 1 }))).toBe("failed");
});

test("tags read as they are written", () => {
  expect(readTags(" team=nlp, keep  a=b=c =x")).toEqual({ team: "nlp", keep: "", a: "b=c" });
  expect(tagsOf(run("x", { tags: readTags("b=1 a") }))).toEqual(["a", "b=1"]);
});

test("moments are said as people say them", () => {
  const now = new Date(2026, 4, 5, 15, 0).getTime();
  expect(when((now - 10_000) * 1e6, now)).toBe("just now");
  expect(when((now - 120_000) * 1e6, now)).toBe("2 min ago");
  expect(when((now - 2 * 3600_000) * 1e6, now)).toBe("today 13:00");
  expect(when((now - 24 * 3600_000) * 1e6, now)).toBe("2026-05-04 15:00");
});
