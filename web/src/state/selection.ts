// What is selected: one value that every panel obeys, shows and sets. All of it that another reader
// would need stands in the address, so an address is a permalink.

import type { Store } from "./store";

/** Empty words and null stand for nothing selected. */
export interface Selection {
  window: [number, number] | null; // what is in view: ns since the run began, or events of a trace
  at: number | null; // a moment in the same unit
  range: [number, number] | null; // a stretch whose figures are shown, in the same unit
  process: number; // 0: all of them
  phase: string;
  module: string;
  line: string; // as tables and legends name it: train.py:40, or what stands for one
  category: string;
  search: string; // a regular expression
  block: number | null; // of a snapshot: its number there
  bytes: [number, number] | null; // of the stack of blocks, from its foot
  device: string;
  colour: string; // what blocks are told apart by, "" for the lines that allocate
  only: string; // the one size, age or stream that is looked at, "" for all
  flame: string; // what a flame graph shows and how, words joined by "."
}

export const none: Selection = {
  window: null,
  at: null,
  range: null,
  process: 0,
  phase: "",
  module: "",
  line: "",
  category: "",
  search: "",
  block: null,
  bytes: null,
  device: "",
  colour: "",
  only: "",
  flame: "",
};

export const chosen = Object.keys(none) as (keyof Selection)[];

const ranges = { window: "t", range: "range", bytes: "y" } as const,
  numbers = { at: "at", block: "block" } as const;
const texts = {
  phase: "phase",
  module: "module",
  line: "line",
  category: "category",
  search: "q",
  device: "device",
  colour: "colour",
  only: "only",
  flame: "flame",
} as const;
const known = new Set<string>([
  ...Object.values(ranges),
  ...Object.values(numbers),
  ...Object.values(texts),
  "process",
]);
const names = <T extends object>(of: T) => Object.keys(of) as (keyof T)[];

/** Whether a word of an address belongs to the selection. */
export const isOfSelection = (word: string): boolean => known.has(word);

/** The selection that the words of an address hold. What is not understood is not selected. */
export function read(words: URLSearchParams): Selection {
  const made = { ...none };
  for (const name of names(ranges)) {
    const [from, to] = (words.get(ranges[name]) ?? "").split("-").map(Number);
    if (from !== undefined && to !== undefined && to > from) made[name] = [from, to];
  }
  for (const name of names(numbers)) {
    const text = words.get(numbers[name]),
      n = Number(text);
    if (text && Number.isFinite(n)) made[name] = n;
  }
  for (const name of names(texts)) made[name] = words.get(texts[name]) ?? "";
  const process = Number(words.get("process"));
  return { ...made, process: Number.isFinite(process) ? process : 0 };
}

/** Writes it into the words of an address; what is not selected is not in it. */
export function write(of: Selection, words: URLSearchParams): void {
  for (const name of names(ranges)) {
    const range = of[name];
    if (range) words.set(ranges[name], range.map(Math.round).join("-"));
  }
  for (const name of names(numbers)) {
    const value = of[name];
    if (value !== null) words.set(numbers[name], String(Math.round(value)));
  }
  for (const name of names(texts)) if (of[name]) words.set(texts[name], of[name]);
  if (of.process) words.set("process", String(of.process));
}

/**
 * What something that a panel shows is, as far as the panel knows: undefined is not known, an empty
 * word is known to be none.
 */
export interface Thing {
  line?: string;
  category?: string;
  phase?: string;
  module?: string;
  process?: number;
  words?: string;
}

/**
 * Whether a thing is what is selected ("picked"), is something else ("dim"), or nothing is selected
 * that it could be ("").
 */
export type Standing = "picked" | "dim" | "";

const words = ["line", "category", "phase", "module"] as const;
export const followed = [...words, "process", "search"] as const;

export function standing(of: Pick<Selection, (typeof followed)[number]>, thing: Thing): Standing {
  let is: Standing = "";
  for (const name of words) {
    const wanted = of[name],
      has = thing[name];
    if (!wanted || has === undefined) continue;
    if (wanted !== has) return "dim";
    is = "picked";
  }
  if (of.process && thing.process !== undefined && thing.process !== of.process) return "dim";
  if (of.search && thing.words !== undefined) {
    const pattern = patternOf(of.search);
    if (pattern && !pattern.test(thing.words)) return "dim";
    if (pattern) is = "picked";
  }
  return is;
}

let last: { text: string; pattern: RegExp | null } = { text: "", pattern: null };

/** The search as an expression; null: it is none, or not yet. */
export function patternOf(text: string): RegExp | null {
  if (text !== last.text) {
    let pattern: RegExp | null = null;
    try {
      pattern = text ? new RegExp(text, "i") : null;
    } catch {
      /* somebody is still typing it */
    }
    last = { text, pattern };
  }
  return last.pattern;
}

/** Selects something, or takes it away where it is selected already. */
export function toggle<S extends Selection>(
  page: Store<S>,
  what: Partial<Pick<Selection, (typeof words)[number] | "process" | "at">>,
): void {
  const now: Selection = page.get(),
    all = Object.entries(what) as [keyof typeof what, never][];
  const away = all.every(([name, value]) => now[name] === value);
  page.set(
    (away ? Object.fromEntries(all.map(([name]) => [name, none[name]])) : what) as Partial<S>,
  );
}

const mostUndone = 50,
  togetherMs = 600; // changes of the same fields this close, as while the wheel turns, are one

const wordsOf = (params: unknown) =>
  new URLSearchParams(
    Object.entries((params ?? {}) as Record<string, string>)
      .filter(([key]) => key !== "job")
      .sort(),
  ).toString();

/**
 * Keeps the selections of the page that is open, with its own parameters where it has any, and goes
 * back to the one before; false where there is none.
 */
export function undoing<S extends Selection>(
  page: Store<S>,
  path: (of: S) => string = () => "",
): () => boolean {
  const own = (["params", "path"] as (keyof S)[]).filter((k) => k in page.get()),
    undone = [...chosen, ...own.filter((k) => k !== "path")] as (keyof S)[];
  const past: Partial<S>[] = [],
    same = (k: keyof S, a: Partial<S>, b: Partial<S>) =>
      a[k] === b[k] || (k === "params" && wordsOf(a[k]) === wordsOf(b[k]));
  let now: Partial<S> = {},
    where = "",
    changed = 0,
    fields = "",
    back = false;
  page.follow([...chosen, ...own], (state) => {
    const next = Object.fromEntries(undone.map((k) => [k, state[k]])) as Partial<S>;
    const differ = undone.filter((k) => !same(k, next, now)).join();
    if (path(state) !== where || Object.keys(now).length === 0) past.length = 0;
    else if (!differ) return;
    else if (!back && (differ !== fields || performance.now() - changed > togetherMs))
      past.push(now);
    if (past.length > mostUndone) past.shift();
    if (!back) changed = performance.now();
    [now, where, fields] = [next, path(state), differ];
  });
  return () => {
    const before = past.pop() as (Partial<S> & { params?: Record<string, string> }) | undefined;
    if (!before) return false;
    // what was begun is not undone
    const { job } = (page.get() as { params?: Record<string, string> }).params ?? {};
    back = true;
    page.set(before.params && job ? { ...before, params: { ...before.params, job } } : before);
    back = false;
    changed = 0;
    return true;
  };
}
