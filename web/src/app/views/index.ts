// The pages of the app. A page is one file and one line in pages.

import type { App } from "../state";
import { runPage } from "./run";
import { runsPage } from "./runs";

/** A page that is shown: its element, and what ends its streams and timers when another page comes. */
export interface Shown { element: HTMLElement; close?: () => void }

export interface PageOf {
  path: RegExp; // its groups are handed to show
  title: string; // in the bar; "" where it is not there by itself
  at: string; // where the bar's link leads
  show: (app: App, ...parts: string[]) => Shown;
}

/** The pages in the order of the bar. Add yours here. */
export const pages: PageOf[] = [
  { path: /^\/$/, title: "Runs", at: "/", show: runsPage },
  { path: /^\/runs\/([^/]+)$/, title: "", at: "", show: runPage },
];
