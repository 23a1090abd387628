// One state: what is open and what is selected (state/selection.ts). The address holds it, and
// every panel follows it.

import { darkAtFirst } from "../draw/paint";
import {
  chosen,
  isOfSelection,
  none,
  read,
  undoing,
  write,
  type Selection,
} from "../state/selection";
import type { Page } from "../state/page";
import { store, type Store } from "../state/store";
import { newEntry } from "./scrolled";

export interface State extends Page {
  path: string; // /, /runs/ID, /snapshots/ID …
  // of the query, those that belong to one view, as a and b of a difference
  params: Readonly<Record<string, string>>;
}

export type App = Store<State>;

/** The store of the whole app, which can take the last change of the selection back. */
export interface Root extends App {
  undo(): boolean;
}

/** The part of the state that an address holds. */
export function fromAddress(path: string, query: string): Omit<State, "dark" | "cursor" | "shown"> {
  const words = new URLSearchParams(query);
  return {
    path,
    params: Object.fromEntries([...words].filter(([key]) => !isOfSelection(key))),
    ...read(words),
  };
}

/** The address of a state; what is not selected is not in it. */
export function toAddress(state: Omit<State, "dark" | "cursor" | "shown">): string {
  const words = new URLSearchParams(state.params);
  write(state, words);
  const text = words.toString();
  return text ? `${state.path}?${text}` : state.path;
}

/**
 * The app's state, kept in step with the address. A step to another page can be gone back, a change
 * of the selection replaces.
 */
export function appState(): Root {
  const app = store<State>({
    dark: darkAtFirst(),
    cursor: null,
    shown: {},
    ...fromAddress(location.pathname, location.search),
  } satisfies State);
  addEventListener("popstate", () => app.set(fromAddress(location.pathname, location.search)));
  app.follow(["path", "params", ...chosen], (state) => {
    const address = toAddress(state);
    if (address === location.pathname + location.search) return;
    if (state.path === location.pathname) history.replaceState(history.state, "", address);
    else history.pushState(newEntry(), "", address);
  });
  return { ...app, undo: undoing(app, ({ path }) => path) };
}

/**
 * The address of another page about the same snapshot, with what is selected; colours and graphs
 * are each page's own.
 */
export const sameOn = (state: State, path: string): string =>
  toAddress({ ...state, path, params: {}, bytes: null, colour: "", flame: "" });

/** Opens another page of the app with nothing selected, but for what is given. */
export function go(
  app: App,
  path: string,
  params: Record<string, string> = {},
  selection: Partial<Selection> = {},
): void {
  app.set({ ...none, ...selection, path, params, cursor: null, shown: {} });
}
