// What a page of the app is.

import type { Moments } from "../../views/chosen";
import type { KeyGroup } from "../frame/keys";
import type { Command } from "../frame/palette";
import type { App, State } from "../state";

/** What a page does with files that are dropped on it, and what says so while they are dragged. */
export interface Dropping {
  says: string;
  files(files: File[]): void;
}

/**
 * A page that is shown: its element, and what ends its streams and timers when another page comes.
 * What it follows of the state ends by itself. process says what a process is called, moments what
 * they are where that depends on what is shown. Its keys stand in the sheet of ? and are
 * dispatched; its commands stand in the palette, asked for when it opens.
 */
export interface Shown {
  element: HTMLElement;
  close?: () => void;
  process?: (id: number) => string;
  moments?: () => Moments;
  keys?: KeyGroup[];
  commands?: () => Command[];
  drop?: Dropping;
}

export interface PageOf {
  path: RegExp; // its groups are handed to show, as they stand in the address
  title: string; // in the bar; "" where it is not there by itself
  at: string; // where the bar's link leads
  // what of the server's status must be so, for the link to stand in the bar
  needs?: "fleet" | "account";
  // it follows a change of the address's parameters itself; others are shown anew
  follows?: boolean | ((before: State["params"], now: State["params"]) => boolean);
  // its panels have a selection, whose moments are times, or events of a trace
  selects?: "time" | "event";
  show: (app: App, ...parts: string[]) => Shown;
}
