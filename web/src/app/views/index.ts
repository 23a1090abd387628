// The pages of the app. A page is one folder, with a style sheet of its own, and one line in pages.

import type { Command } from "../frame/palette";
import type { KeyGroup } from "../frame/keys";
import type { App, State } from "../state";
import type { Moments } from "../../views/chosen";
import { diffPage } from "./diff";
import { fitPage } from "./fit";
import { imaginePage } from "./imagine";
import { jobsPage } from "./jobs";
import { matricesPage } from "./matrices";
import { matrixPage } from "./matrix";
import { runPage } from "./run";
import { runsPage } from "./runs";
import { snapshotPage } from "./snapshot";
import { snapshotsPage } from "./snapshots";
import { whatIfPage } from "./whatif";

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
}

export interface PageOf {
  path: RegExp; // its groups are handed to show, as they stand in the address
  title: string; // in the bar; "" where it is not there by itself
  at: string; // where the bar's link leads
  // it follows a change of the address's parameters itself; others are shown anew
  follows?: boolean | ((before: State["params"], now: State["params"]) => boolean);
  // its panels have a selection, whose moments are times, or events of a trace
  selects?: "time" | "event";
  show: (app: App, ...parts: string[]) => Shown;
}

/** The pages in the order of the bar. Add yours here. */
export const pages: PageOf[] = [
  { path: /^\/$/, title: "Runs", at: "/", follows: true, show: runsPage },
  { path: /^\/runs\/([^/]+)$/, title: "", at: "", follows: true, selects: "time", show: runPage },
  { path: /^\/snapshots$/, title: "Snapshots", at: "/snapshots", show: snapshotsPage },
  { path: /^\/snapshots\/([^/]+)$/, title: "", at: "", selects: "event", show: snapshotPage },
  { path: /^\/imagine$/, title: "Imagine", at: "/imagine", show: imaginePage },
  { path: /^\/fit$/, title: "Fit", at: "/fit", show: fitPage },
  { path: /^\/matrices$/, title: "Matrices", at: "/matrices", show: matricesPage },
  { path: /^\/matrices\/([^/]+)$/, title: "", at: "", show: matrixPage },
  {
    path: /^\/diff$/,
    title: "Compare",
    at: "/diff",
    selects: "event",
    follows: (before, now) => ["a", "b", "by"].every((key) => before[key] === now[key]),
    show: diffPage,
  },
  { path: /^\/jobs$/, title: "Jobs", at: "/jobs", show: jobsPage },
  {
    path: /^\/snapshots\/([^/]+)\/whatif$/,
    title: "",
    at: "",
    follows: true,
    selects: "event",
    show: whatIfPage,
  },
];
