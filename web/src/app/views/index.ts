// The pages of the app. A page is one folder, with a style sheet of its own, and one line in pages.

import { diffPage } from "./diff";
import { fitPage } from "./fit";
import { fleetPage } from "./fleet";
import { imaginePage } from "./imagine";
import { jobsPage } from "./jobs";
import { matricesPage } from "./matrices";
import { matrixPage } from "./matrix";
import type { PageOf } from "./page";
import { personPage } from "./person";
import { planPage } from "./plan";
import { runPage } from "./run";
import { runsPage } from "./runs";
import { snapshotPage } from "./snapshot";
import { snapshotsPage } from "./snapshots";
import { trendPage } from "./trend";
import { tunePage } from "./tune";
import { whatIfPage } from "./whatif";

/** The pages in the order of the bar. Add yours here. */
export const pages: PageOf[] = [
  { path: /^\/$/, title: "Runs", at: "/", follows: true, show: runsPage },
  { path: /^\/runs\/([^/]+)$/, title: "", at: "", follows: true, selects: "time", show: runPage },
  { path: /^\/snapshots$/, title: "Snapshots", at: "/snapshots", show: snapshotsPage },
  { path: /^\/snapshots\/([^/]+)$/, title: "", at: "", selects: "event", show: snapshotPage },
  { path: /^\/plan$/, title: "Plan", at: "/plan", follows: true, show: planPage },
  { path: /^\/imagine$/, title: "Imagine", at: "/imagine", show: imaginePage },
  { path: /^\/fit$/, title: "Fit", at: "/fit", show: fitPage },
  {
    path: /^\/tune$/,
    title: "Tune",
    at: "/tune",
    follows: (before, now) =>
      [...new Set([...Object.keys(before), ...Object.keys(now)])].every(
        (key) => key === "plan" || before[key] === now[key],
      ),
    show: tunePage,
  },
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
  { path: /^\/trend$/, title: "Trend", at: "/trend", show: trendPage },
  { path: /^\/fleet$/, title: "Fleet", at: "/fleet", needs: "fleet", show: fleetPage },
  { path: /^\/person$/, title: "Your data", at: "/person", needs: "account", show: personPage },
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
