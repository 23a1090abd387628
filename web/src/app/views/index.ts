// The pages of the app. A page is one file and one line in pages.

import type { App } from "../state";
import { diffPage } from "./diff";
import { fitPage } from "./fit";
import { imaginePage } from "./imagine";
import { jobsPage } from "./jobs";
import { matricesPage } from "./matrices";
import { matrixPage } from "./matrix";
import { runPage } from "./run";
import { runsPage } from "./runs";
import { snapshotPage, snapshotsPage } from "./snapshot";
import { whatIfPage } from "./whatif";

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
  { path: /^\/snapshots$/, title: "Snapshots", at: "/snapshots", show: snapshotsPage },
  { path: /^\/snapshots\/([^/]+)$/, title: "", at: "", show: snapshotPage },
  { path: /^\/imagine$/, title: "Imagine", at: "/imagine", show: imaginePage },
  { path: /^\/fit$/, title: "Fit", at: "/fit", show: fitPage },
  { path: /^\/matrices$/, title: "Matrices", at: "/matrices", show: matricesPage },
  { path: /^\/matrices\/([^/]+)$/, title: "", at: "", show: matrixPage },
  { path: /^\/diff$/, title: "Compare", at: "/diff", show: diffPage },
  { path: /^\/jobs$/, title: "Jobs", at: "/jobs", show: jobsPage },
  { path: /^\/snapshots\/([^/]+)\/whatif$/, title: "", at: "", show: whatIfPage },
];
