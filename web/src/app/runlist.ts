// The list of runs as its page shows it: what is searched, filtered, ordered, and in words.
// Everything here is pure.

import type { Ending, Run } from "../api";
import { bytes, commandLine, count, duration, programOf } from "../lib/format";

/** How a run ended, as a filter has it. */
export type Outcome = "live" | "done" | "failed" | "no verdict" | "not known" | "cut off";
const outcomes: Outcome[] = ["live", "done", "failed", "no verdict", "not known", "cut off"];

const outcomeOf: Record<Ending["kind"], Outcome> = {
  running: "live",
  done: "done",
  stopped: "done",
  fits: "done",
  tight: "done",
  conditional: "done",
  oom: "failed",
  failed: "failed",
  "no verdict": "no verdict",
  unknown: "not known",
  "cut off": "cut off",
};
export const outcome = (run: Run): Outcome => outcomeOf[run.ended.kind];

/** The memory that a run is known by, as its report says it. */
export const peakOf = (run: Run): number | undefined => run.figure?.bytes;

/** Whether that is memory of a device or of the host: figures of one kind have one scale. */
export const kindOfPeak = (run: Run): "device" | "host" =>
  /^(allocator|device)\./.test(run.figure?.source ?? "") ? "device" : "host";

/** What a run is called: by its name, else by its script, else by its id. */
export function titleOf(run: Run): string {
  const [script = ""] = programOf(run.command ?? []);
  return run.name || (/^(python|pypy)[\d.]*t?$/.test(script) ? "" : script) || run.id;
}

/** A condition on a figure, as peak>1GiB. */
export interface Limit {
  figure: string;
  is: string;
  value: number;
}
interface Figured {
  of: (run: Run) => number | undefined;
  units: Record<string, number>;
  example: string;
}
const figures: Record<string, Figured> = {
  peak: {
    of: (r) => peakOf(r),
    units: {
      b: 1,
      kib: 1024,
      mib: 1024 ** 2,
      gib: 1024 ** 3,
      tib: 1024 ** 4,
      kb: 1e3,
      mb: 1e6,
      gb: 1e9,
      tb: 1e12,
    },
    example: "peak>1GiB",
  },
  duration: {
    of: (r) => r.duration_ns,
    units: { ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, d: 86400e9 },
    example: "duration<5min",
  },
  steps: { of: (r) => r.steps, units: { "": 1 }, example: "steps>=100" },
  findings: { of: (r) => r.findings, units: { "": 1 }, example: "findings>0" },
};
const compared: Record<string, (is: number, to: number) => boolean> = {
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
};

/** What conditions there are, for people. */
export const conditions = Object.values(figures)
  .map((f) => f.example)
  .join(", ");

/**
 * A condition as somebody typed it; the text itself where it cannot be read; null: it is no
 * condition.
 */
function limitOf(piece: string): Limit | string | null {
  const [, figure = "", is = "", rest = ""] = /^([^<>"]*)([<>]=?)(.*)$/s.exec(piece) ?? [],
    [, number = "", unit = ""] = /^(\d+\.?\d*|\.\d+)([a-z]*)$/i.exec(rest) ?? [];
  if (!is) return null;
  const scale =
    Object.hasOwn(figures, figure) && number
      ? figures[figure]!.units[unit.toLowerCase()]
      : undefined;
  return scale === undefined ? piece : { figure, is, value: Number(number) * scale };
}

function within(run: Run, { figure, is, value }: Limit): boolean {
  const has = figures[figure]!.of(run);
  return has !== undefined && compared[is]!(has, value);
}

/**
 * What the reader asked for: words, parts such as state:failed, verb:imagine and tag:model=bert,
 * conditions, and findings and lines, which the server looks for; wrong are those that cannot be
 * read.
 */
export interface Query {
  words: string[];
  state: string[];
  verb: string[];
  tag: string[];
  finding: string[];
  line: string[];
  limits: Limit[];
  wrong: string[];
}
export type Part = "state" | "verb" | "tag" | "finding" | "line";

const pieces = (text: string): string[] => text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
const partOf = (piece: string): [Part, string] | null => {
  const found = /^(state|verb|tag|finding|line):(.+)$/s.exec(piece.replaceAll('"', ""));
  return found ? [found[1] as Part, found[2]!] : null;
};

/** A search as somebody typed it. A value with spaces stands in quotes: state:"cut off". */
export function readQuery(text: string): Query {
  const query: Query = {
    words: [],
    state: [],
    verb: [],
    tag: [],
    finding: [],
    line: [],
    limits: [],
    wrong: [],
  };
  for (const piece of pieces(text)) {
    const part = partOf(piece),
      limit = part ? null : limitOf(piece);
    if (typeof limit === "string") query.wrong.push(limit);
    else if (limit) query.limits.push(limit);
    else if (part) query[part[0]].push(part[1]);
    else if (piece.replaceAll('"', "")) query.words.push(piece.replaceAll('"', "").toLowerCase());
  }
  return query;
}

/** The search with a part more, or without it where it was there. */
export function toggled(text: string, part: Part, value: string): string {
  const all = pieces(text),
    rest = all.filter((p) => {
      const is = partOf(p);
      return !(is && is[0] === part && is[1] === value);
    });
  return [
    ...rest,
    ...(rest.length === all.length ? [`${part}:${/\s/.test(value) ? `"${value}"` : value}`] : []),
  ].join(" ");
}

const tagged = (run: Run, wanted: string) =>
  tagsOf(run).includes(wanted) || (!wanted.includes("=") && run.tags?.[wanted] !== undefined);

/**
 * Whether a run is what a search asks for: one of its states and verbs, all of its tags and words.
 */
const matches = (run: Run, { words, state, verb, tag, limits }: Query): boolean =>
  limits.every((l) => within(run, l)) &&
  (state.length === 0 || state.includes(outcome(run))) &&
  (verb.length === 0 || verb.includes(run.verb ?? "")) &&
  tag.every((t) => tagged(run, t)) &&
  words.every((w) => textOf(run).includes(w));

/** What a filter can be set to, with how many runs that leaves, beside what else is asked for. */
export interface Facet {
  part: Part;
  value: string;
  count: number;
  on: boolean;
}

export function facets(runs: Run[], query: Query): Facet[] {
  const counted = (part: Part, of: (run: Run) => string[], without: Query) => {
    const n = new Map<string, number>(query[part].map((v) => [v, 0]));
    for (const run of runs)
      if (matches(run, without)) for (const value of of(run)) n.set(value, (n.get(value) ?? 0) + 1);
    return [...n].map(([value, count]): Facet => ({
      part,
      value,
      count,
      on: query[part].includes(value),
    }));
  };
  const states = counted("state", (r) => [outcome(r)], { ...query, state: [] }).sort(
    (a, b) => outcomes.indexOf(a.value as Outcome) - outcomes.indexOf(b.value as Outcome),
  );
  const verbs = counted("verb", (r) => (r.verb ? [r.verb] : []), { ...query, verb: [] }).sort(
    (a, b) => b.count - a.count || a.value.localeCompare(b.value),
  );
  const tags = counted("tag", tagsOf, query).sort(
    (a, b) => Number(b.on) - Number(a.on) || b.count - a.count || a.value.localeCompare(b.value),
  );
  return [...some(states), ...some(verbs), ...tags];
}

/** A choice of one is none, unless it is taken. */
const some = (all: Facet[]) => (all.length > 1 || all.some((f) => f.on) ? all : []);

/** A column of the list; by is what it is ordered by, down whether the largest come first. */
export interface Column {
  title: string;
  by: (run: Run) => number | string | undefined;
  text: (run: Run, now: number) => string;
  down: boolean;
  number: boolean;
}

const size = (
  by: (run: Run) => number | undefined,
): Pick<Column, "by" | "text" | "down" | "number"> => ({
  by,
  text: (r) => {
    const v = by(r);
    return v === undefined ? "–" : bytes(v);
  },
  down: true,
  number: true,
});
const amount = (
  by: (run: Run) => number | undefined,
): Pick<Column, "by" | "text" | "down" | "number"> => ({
  by,
  text: (r) => {
    const v = by(r);
    return v === undefined ? "–" : count(v);
  },
  down: true,
  number: true,
});
const word = (
  by: (run: Run) => string | undefined,
): Pick<Column, "by" | "text" | "down" | "number"> => ({
  by,
  text: (r) => by(r) || "–",
  down: false,
  number: false,
});

export const columns: Record<string, Column> = {
  name: { title: "Name", ...word((r) => titleOf(r).toLowerCase()) },
  ended: { title: "State", ...word((r) => r.ended.text) },
  curve: { title: "Curve", ...size(peakOf) },
  peak: { title: "Peak", ...size(peakOf) },
  findings: { title: "Findings", ...amount((r) => r.findings) },
  steps: { title: "Steps", ...amount((r) => r.steps || undefined) },
  duration: {
    title: "Duration",
    by: (r) => r.duration_ns,
    text: (r) => duration(r.duration_ns),
    down: true,
    number: true,
  },
  started: {
    title: "Started",
    by: (r) => r.start_wall_ns,
    text: (r, now) => when(r.start_wall_ns, now),
    down: true,
    number: true,
  },
  verb: { title: "Verb", ...word((r) => r.verb) },
  host: { title: "Machine", ...word((r) => r.host) },
  id: { title: "Id", ...word((r) => r.id) },
  rss: { title: "Peak RSS", ...size((r) => r.peak_host_rss_bytes) },
  pss: { title: "Peak PSS", ...size((r) => r.peak_host_pss_bytes) },
  device: { title: "Peak device", ...size((r) => r.peak_device_used_bytes) },
  reserved: { title: "Reserved", ...size((r) => r.peak_reserved_bytes) },
  allocated: { title: "Allocated", ...size((r) => r.peak_allocated_bytes) },
  processes: { title: "Processes", ...amount((r) => r.processes) },
  ooms: { title: "Out of memory", ...amount((r) => r.ooms) },
  size: { title: "Size of the file", ...size((r) => r.size_bytes) },
};

/** The columns beside the name, where the address names none. */
export const usual = ["ended", "curve", "peak", "findings", "steps", "duration", "started"];

/**
 * A column by the name that an address has: one of those above, or the values of a tag, as
 * tag.model.
 */
export function columnOf(name: string): Column | undefined {
  const tag = /^tag\.(.+)$/.exec(name)?.[1];
  return tag === undefined
    ? columns[name]
    : {
        title: tag,
        ...word((r) => {
          const v = r.tags?.[tag];
          return v === "" ? "yes" : v;
        }),
      };
}

/** Columns as the address has them; what is not known is left out. */
export function columnsOf(text: string | undefined): string[] {
  const named = [...new Set((text ?? "").split(",").filter((n) => n !== "name" && columnOf(n)))];
  return named.length ? named : usual;
}

/** For the address; the usual ones are not in it. */
export const columnsText = (names: string[]): string =>
  names.join() === usual.join() ? "" : names.join();

/** A sort as the address has it: a column, with - before it where it is turned round. */
export function sortOf(text: string): { name: string; down: boolean } {
  const name = text.replace(/^-/, ""),
    known = columnOf(name);
  return known
    ? { name, down: text.startsWith("-") ? !known.down : known.down }
    : { name: "started", down: true };
}

/** The runs that are asked for, in their order; runs without the figure stand last. */
export function chosen(runs: Run[], query: Query, sort: string): Run[] {
  const { name, down } = sortOf(sort),
    by = columnOf(name)!.by;
  return runs
    .filter((run) => matches(run, query))
    .sort((a, b) => {
      const [l, r] = [by(a), by(b)];
      if (l === undefined || r === undefined)
        return (
          Number(l === undefined) - Number(r === undefined) || b.start_wall_ns - a.start_wall_ns
        );
      return (l < r ? -1 : l > r ? 1 : 0) * (down ? -1 : 1) || b.start_wall_ns - a.start_wall_ns;
    });
}

const texts = new WeakMap<Run, string>();

function textOf(run: Run): string {
  let text = texts.get(run);
  if (text === undefined)
    texts.set(
      run,
      (text = [run.name, run.id, run.verb, run.host, commandLine(run.command ?? []), ...tagsOf(run)]
        .join(" ")
        .toLowerCase()),
    );
  return text;
}

/** A row of the list: a run, or the trials of a matrix together. */
export interface Row extends Run {
  trials?: Run[];
}

const matrixOf = (run: Run) => (run.tags?.cell === undefined ? undefined : run.tags.matrix);

/**
 * The trials of a matrix as one row, where the first of them stands. A search for tag:matrix=NAME
 * has them one by one.
 */
export function grouped(runs: Run[], query: Query): Row[] {
  const of = new Map<string, Run[]>();
  for (const run of runs) {
    const name = matrixOf(run);
    if (name !== undefined && !query.tag.includes(`matrix=${name}`))
      of.set(name, [...(of.get(name) ?? []), run]);
  }
  return runs.flatMap((run): Row[] => {
    const name = matrixOf(run),
      trials = name === undefined ? [] : (of.get(name) ?? []);
    return trials.length < 2 ? [run] : trials[0] === run ? [together(name!, trials)] : [];
  });
}

function together(name: string, trials: Run[]): Row {
  const ends = new Map<string, number>(),
    kinds = new Set(trials.map((t) => t.ended.kind)),
    sum = (by: (run: Run) => number) => trials.reduce((n, t) => n + by(t), 0),
    first = trials[0]!;
  for (const {
    ended: { text },
  } of trials)
    ends.set(text, (ends.get(text) ?? 0) + 1);
  const same = trials
    .filter((t) => t.figure && kindOfPeak(t) === kindOfPeak(trials.find((o) => o.figure)!))
    .toSorted((a, b) => b.figure!.bytes - a.figure!.bytes)[0];
  return {
    id: `matrix ${name}`,
    name,
    verb: first.verb ?? "bench",
    label: first.label ?? "measured",
    state: kinds.has("running") ? "running" : "finished",
    trials,
    ...(same?.figure ? { figure: same.figure } : {}),
    ended: {
      kind: kinds.has("running") ? "running" : kinds.size === 1 ? first.ended.kind : "unknown",
      text: [...ends]
        .map(([text, n]) => (ends.size === 1 ? text : `${count(n)} ${text}`))
        .join(", "),
    },
    start_wall_ns: Math.max(...trials.map((t) => t.start_wall_ns)),
    duration_ns: sum((t) => t.duration_ns),
    steps: sum((t) => t.steps),
    processes: sum((t) => t.processes),
    ooms: sum((t) => t.ooms),
    dropped: sum((t) => t.dropped),
    size_bytes: sum((t) => t.size_bytes),
  };
}

/** Tags as people write them: name=value, or name alone. */
export const tagsOf = (run: Pick<Run, "tags">): string[] =>
  Object.entries(run.tags ?? {})
    .map(([name, value]) => (value ? `${name}=${value}` : name))
    .sort();

/** Tags for a field in which they are changed; a value with spaces or commas stands in quotes. */
export const tagsText = (run: Pick<Run, "tags">): string =>
  tagsOf(run)
    .map((t) => (/[\s,]/.test(t) ? `"${t}"` : t))
    .join(" ");

/** Tags from what somebody typed, apart by commas or spaces. */
export function readTags(text: string): Record<string, string> {
  return Object.fromEntries(
    (text.match(/(?:[^\s,"]|"[^"]*"?)+/g) ?? [])
      .map((t) => t.replaceAll('"', ""))
      .map((tag) => {
        const [name = "", ...value] = tag.split("=");
        return [name, value.join("=")] as const;
      })
      .filter(([name]) => name),
  );
}

/** What has to be set and removed for some tags to become others. */
export function tagChange(
  from: Record<string, string>,
  to: Record<string, string>,
): { set: Record<string, string>; remove: string[] } {
  return {
    set: Object.fromEntries(Object.entries(to).filter(([k, v]) => from[k] !== v)),
    remove: Object.keys(from).filter((k) => !(k in to)),
  };
}

/** A moment (ns since 1970) as people say it, seen from now (ms since 1970). */
export function when(ns: number, now: number): string {
  const seconds = Math.round(now / 1000 - ns / 1e9),
    date = new Date(ns / 1e6),
    two = (n: number) => String(n).padStart(2, "0");
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`,
    today = new Date(now);
  if (date.toDateString() === today.toDateString()) return `today ${clock}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}
