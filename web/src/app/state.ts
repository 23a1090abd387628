// One state: what is open and what is selected. All of it that another reader would need stands in the address, so an address is a
// permalink. Every panel follows the same selection.

import { darkAtFirst } from "../draw/paint";
import { store, type Page, type Store } from "../state/store";

/** What every panel shows at once: a stretch of time, a moment, a block, a line, a category. */
export interface Selection {
  window: [number, number] | null; // ns since the run began, or events of a trace
  at: number | null; // a moment in the same unit
  range: [number, number] | null; // a stretch of time whose figures are shown, ns since the run began
  block: number | null; // of a snapshot: its number there
  bytes: [number, number] | null; // of the stack of blocks, from its foot
  line: string; // FILE:LINE, "" for none
  category: string;
  search: string;
  device: string;
  colour: string; // what blocks are told apart by, "" for the lines that allocate
  only: string; // the one value of that which is looked at, "" for all
  flame: string; // what a flame graph shows and how, words joined by "."
}

export interface State extends Page, Selection {
  path: string; // /, /runs/ID, /snapshots/ID …
  params: Readonly<Record<string, string>>; // of the query, those that belong to one view, as a and b of a difference
}

export type App = Store<State>;

/** The store of the whole app, which can take the last change of the selection back. */
export interface Root extends App { undo(): boolean }

const keys = { window: "t", at: "at", range: "range", block: "block", line: "line", category: "category", search: "q", device: "device", process: "process", bytes: "y", colour: "colour", only: "only", flame: "flame" } as const;
const none: Selection & { process: number } = { window: null, at: null, range: null, block: null, line: "", category: "", search: "", device: "", process: 0, bytes: null, colour: "", only: "", flame: "" };

/** The part of the state that an address holds. */
export function fromAddress(path: string, query: string): Omit<State, "dark" | "cursor" | "shown"> {
  const words = new URLSearchParams(query);
  const number = (key: string) => { const n = Number(words.get(key) ?? NaN); return words.get(key) && Number.isFinite(n) ? n : null; };
  const range = (key: string): [number, number] | null => { const [from, to] = (words.get(key) ?? "").split("-").map(Number); return from !== undefined && to !== undefined && to > from ? [from, to] : null; };
  const known = new Set<string>(Object.values(keys));
  return {
    path, params: Object.fromEntries([...words].filter(([key]) => !known.has(key))),
    window: range(keys.window), range: range(keys.range), bytes: range(keys.bytes),
    at: number(keys.at), block: number(keys.block), process: number(keys.process) ?? 0,
    line: words.get(keys.line) ?? "", category: words.get(keys.category) ?? "", search: words.get(keys.search) ?? "", device: words.get(keys.device) ?? "",
    colour: words.get(keys.colour) ?? "", only: words.get(keys.only) ?? "", flame: words.get(keys.flame) ?? "",
  };
}

/** The address of a state; what is not selected is not in it. */
export function toAddress(state: Omit<State, "dark" | "cursor" | "shown">): string {
  const words = new URLSearchParams(state.params);
  for (const name of ["window", "range", "bytes"] as const) { const range = state[name]; if (range) words.set(keys[name], range.map(Math.round).join("-")); }
  for (const name of ["at", "block"] as const) { const value = state[name]; if (value !== null) words.set(keys[name], String(Math.round(value))); }
  for (const name of ["line", "category", "search", "device", "colour", "only", "flame"] as const) if (state[name]) words.set(keys[name], state[name]);
  if (state.process) words.set(keys.process, String(state.process));
  const text = words.toString();
  return text ? `${state.path}?${text}` : state.path;
}

const chosen = ["window", "bytes", "at", "range", "block", "line", "category", "search", "device", "process", "colour", "only", "flame"] as const;
const mostUndone = 50, togetherMs = 600; // changes of the same fields this close, as while the wheel turns, are one

/** The app's state, kept in step with the address. A step to another page can be gone back, a change of the selection replaces. */
export function appState(): Root {
  const app = store<State>({ dark: darkAtFirst(), cursor: null, shown: {}, ...fromAddress(location.pathname, location.search) } satisfies State);
  addEventListener("popstate", () => app.set(fromAddress(location.pathname, location.search)));
  app.follow(["path", "params", ...chosen], (state) => {
    const address = toAddress(state);
    if (address === location.pathname + location.search) return;
    if (state.path === location.pathname) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  });
  return { ...app, undo: undoing(app) };
}

/** Keeps the selections of the page that is open, and goes back to the one before. */
function undoing(app: App): () => boolean {
  const past: Partial<State>[] = [];
  let now: Partial<State> = {}, path = "", changed = 0, fields = "", back = false;
  app.follow(["path", ...chosen], (state) => {
    const next = Object.fromEntries(chosen.map((k) => [k, state[k]])) as Partial<State>;
    const differ = chosen.filter((k) => next[k] !== now[k]).join();
    if (state.path !== path) past.length = 0;
    else if (!back && (differ !== fields || performance.now() - changed > togetherMs)) past.push(now);
    if (past.length > mostUndone) past.shift();
    if (!back) changed = performance.now();
    [now, path, fields] = [next, state.path, differ];
  });
  return () => {
    const before = past.pop();
    if (!before) return false;
    back = true;
    app.set(before);
    back = false;
    changed = 0;
    return true;
  };
}

/** The address of another page about the same snapshot, with the moment, the stretch and the block that are selected. */
export const sameOn = (state: State, path: string): string =>
  toAddress({ ...state, ...none, path, params: {}, window: state.window, at: state.at, block: state.block, device: state.device });

/** Opens another page of the app with nothing selected, but for what is given. */
export function go(app: App, path: string, params: Record<string, string> = {}, selection: Partial<Selection> = {}): void {
  app.set({ ...none, ...selection, path, params, cursor: null, shown: {} });
}
