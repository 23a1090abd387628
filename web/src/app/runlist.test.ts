import type { Run } from "../api";
import { expect, test } from "vitest";
import {
  chosen,
  columnsOf,
  columnsText,
  facets,
  grouped,
  outcome,
  readQuery,
  readTags,
  sortOf,
  tagChange,
  tagsOf,
  tagsText,
  titleOf,
  toggled,
  usual,
  when,
} from "./runlist";

const run = (id: string, more: Partial<Run> = {}): Run => ({
  id,
  state: "finished",
  start_wall_ns: 1e18,
  duration_ns: 1e9,
  steps: 0,
  processes: 1,
  ooms: 0,
  dropped: 0,
  size_bytes: 1,
  ended: { kind: "done", text: "done" },
  ...more,
});
const figure = (bytes: number, source = "tree.rss") => ({
  bytes,
  what: "RSS",
  source,
  label: "measured" as const,
});
const runs = [
  run("a", { name: "bert", figure: figure(5), tags: { team: "nlp" }, start_wall_ns: 1 }),
  run("b", {
    command: ["python", "train.py"],
    ended: { kind: "failed", text: "exit 1, IndexError" },
    start_wall_ns: 3,
  }),
  run("c", {
    state: "running",
    ended: { kind: "running", text: "running" },
    verb: "imagine",
    figure: figure(9, "device.process"),
    start_wall_ns: 2,
    tags: { team: "vision", keep: "" },
  }),
];
const ids = (words: string, sort = "") =>
  chosen(runs, readQuery(words), sort)
    .map((r) => r.id)
    .join("");

test("runs are found by words, state, verb and tag", () => {
  expect(ids("")).toBe("bca");
  expect(ids("TRAIN py")).toBe("b");
  expect(ids("team=nlp")).toBe("a");
  expect(ids("state:live")).toBe("c");
  expect(ids("state:live state:failed")).toBe("bc");
  expect(ids("verb:imagine")).toBe("c");
  expect(ids("tag:team=nlp")).toBe("a");
  expect(ids("tag:team")).toBe("ca");
  expect(ids("tag:team tag:keep")).toBe("c");
  expect(ids("tag:te")).toBe("");
  expect(ids('state:"cut off"')).toBe("");
  expect(ids('"train.py')).toBe("b"); // while it is typed
});

test("a part of the search is put in and taken out, and the rest stays", () => {
  expect(toggled("bert", "state", "cut off")).toBe('bert state:"cut off"');
  expect(toggled('state:"cut off" bert', "state", "cut off")).toBe("bert");
  expect(toggled("tag:a=1 x", "tag", "b=2")).toBe("tag:a=1 x tag:b=2");
  expect(readQuery('A tag:"n=x y" state:"cut off"')).toEqual({
    words: ["a"],
    tag: ["n=x y"],
    finding: [],
    line: [],
    state: ["cut off"],
    verb: [],
    limits: [],
    wrong: [],
  });
  expect(readQuery("finding:leak line:models/net.py:12")).toMatchObject({
    finding: ["leak"],
    line: ["models/net.py:12"],
    words: [],
  });
});

test("filters say how many runs they leave beside what else is asked for", () => {
  const of = (text: string) =>
    facets(runs, readQuery(text)).map((f) => `${f.value} ${f.count}${f.on ? " on" : ""}`);
  expect(of("")).toEqual(["live 1", "done 1", "failed 1", "keep 1", "team=nlp 1", "team=vision 1"]);
  expect(of("state:live")).toEqual(["live 1 on", "done 1", "failed 1", "keep 1", "team=vision 1"]);
  expect(of("verb:imagine bert")).toContain("imagine 0 on");
});

test("what has no figure stands last, either way round", () => {
  expect(ids("", "peak")).toBe("cab");
  expect(ids("", "-peak")).toBe("acb");
  expect(ids("", "tag.team")).toBe("acb");
  expect(sortOf("nonsense")).toEqual({ name: "started", down: true });
});

test("columns stand in the address, but for the usual ones", () => {
  expect(columnsOf(undefined)).toEqual(usual);
  expect(columnsOf("peak,nonsense,tag.model,peak")).toEqual(["peak", "tag.model"]);
  expect(columnsText(usual)).toBe("");
  expect(columnsText(["peak"])).toBe("peak");
});

test("a run failed as its report says", () => {
  expect(outcome(run("x", { ended: { kind: "stopped", text: "stopped as asked" } }))).toBe("done");
  expect(outcome(run("x", { ended: { kind: "oom", text: "out of memory" } }))).toBe("failed");
  expect(outcome(run("x", { ooms: 1 }))).toBe("done");
  expect(outcome(run("x", { ended: { kind: "no verdict", text: "no verdict" } }))).toBe(
    "no verdict",
  );
});

test("conditions on figures, and those that cannot be read", () => {
  const all = [
    run("a", { figure: figure(2 ** 30), steps: 10 }),
    run("b", { figure: figure(3 * 2 ** 30), duration_ns: 90e9 }),
    run("c"),
  ];
  const of = (text: string) =>
    chosen(all, readQuery(text), "id")
      .map((r) => r.id)
      .join("");
  expect(of("peak>1GiB")).toBe("b");
  expect(of("peak>=1gib")).toBe("ab");
  expect(of("peak<1.5GiB")).toBe("a");
  expect(of("peak<=1073.7MB")).toBe("");
  expect(of("steps>=10")).toBe("a");
  expect(of("duration>1min")).toBe("b");
  for (const text of [
    "peek>1GiB",
    "peak>",
    "peak>lots",
    "peak>3furlongs",
    "steps>1GiB",
    "constructor>1",
  ])
    expect(readQuery(text)).toMatchObject({ limits: [], wrong: [text] });
  expect(readQuery("model=bert lr=3")).toMatchObject({ words: ["model=bert", "lr=3"], wrong: [] });
});

test("the trials of a matrix are one row, where they are not asked for", () => {
  const trial = (id: string, more: Partial<Run>) =>
    run(id, { tags: { matrix: "m", cell: "x", repeat: "1" }, ...more });
  const all = [
    trial("a", { steps: 3, figure: figure(1) }),
    run("b"),
    trial("c", { steps: 4, figure: figure(7), ended: { kind: "oom", text: "out of memory" } }),
  ];
  expect(grouped(all, readQuery("")).map((r) => [r.id, r.trials?.length])).toEqual([
    ["matrix m", 2],
    ["b", undefined],
  ]);
  expect(grouped(all, readQuery(""))[0]).toMatchObject({
    name: "m",
    steps: 7,
    figure: { bytes: 7 },
    ended: { text: "1 done, 1 out of memory" },
  });
  expect(grouped(all, readQuery("tag:matrix=m")).map((r) => r.id)).toEqual(["a", "b", "c"]);
  expect(grouped(all.slice(0, 2), readQuery("")).map((r) => r.id)).toEqual(["a", "b"]);
});

test("a run without a name is called by its script", () => {
  expect(titleOf(run("x", { name: "n", command: ["python", "a.py"] }))).toBe("n");
  expect(
    titleOf(run("x", { command: ["/usr/bin/python3", "-u", "/home/mia/train.py", "--lr", "3"] })),
  ).toBe("train.py");
  expect(titleOf(run("x", { command: ["python3", "-c", "pass"] }))).toBe("x");
  expect(titleOf(run("x"))).toBe("x");
});

test("tags read as they are written", () => {
  expect(readTags(" team=nlp, keep  a=b=c =x")).toEqual({ team: "nlp", keep: "", a: "b=c" });
  expect(tagsOf(run("x", { tags: readTags("b=1 a") }))).toEqual(["a", "b=1"]);
  const odd = { tags: { note: "two words, and a comma", b: "1" } };
  expect(readTags(tagsText(odd))).toEqual(odd.tags);
  expect(tagChange({ a: "1", b: "2", c: "" }, { a: "1", b: "3", d: "" })).toEqual({
    set: { b: "3", d: "" },
    remove: ["c"],
  });
});

test("moments are said as people say them", () => {
  const now = new Date(2026, 4, 5, 15, 0).getTime();
  expect(when((now - 10_000) * 1e6, now)).toBe("just now");
  expect(when((now - 120_000) * 1e6, now)).toBe("2 min ago");
  expect(when((now - 2 * 3600_000) * 1e6, now)).toBe("today 13:00");
  expect(when((now - 24 * 3600_000) * 1e6, now)).toBe("2026-05-04 15:00");
});
