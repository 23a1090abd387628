// Every test in a browser, one after the other; all run even where one fails. A test is one line.
//   npm run e2e
//
// By themselves: walk.mjs, every page in two widths and two schemes, takes ten minutes; faults.mjs, servers and files that fail.

import { spawnSync } from "node:child_process";
import { here } from "./kit.mjs";

const tests = [
  "e2e",
  "frame",
  "doors",
  "actions",
  "plan",
  "tune",
  "trend",
  "fleet",
  "sharing",
  "person",
  "outage",
  "pullrequest",
  "runs",
  "snapshots",
  "tracks",
  "tabs",
  "explorer",
  "whatif",
  "contents",
  "runparts",
  "keyboard",
];

const failed = tests.filter(
  (test) => spawnSync(process.execPath, [here(`./${test}.mjs`)], { stdio: "inherit" }).status !== 0,
);
if (failed.length) console.log(`failed: ${failed.join(", ")}`);
process.exitCode = failed.length ? 1 : 0;
