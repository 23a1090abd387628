// Every test in a browser, one after the other; all run even where one fails. A test is one line.
//   npm run e2e              npm run e2e -- plan tune
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
  "saved",
  "hostile",
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

const named = process.argv.slice(2);
const unknown = named.filter((name) => !tests.includes(name));
if (unknown.length) {
  console.error(`no such test: ${unknown.join(", ")}; there are ${tests.join(", ")}`);
  process.exit(2);
}

// What a test printed stands below its name, and once more at the end where it failed: the end is what people see first.
const failed = [];
for (const test of named.length ? named : tests) {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [here(`./${test}.mjs`)], {
    maxBuffer: 2 ** 28,
    encoding: "utf8",
  });
  const printed = `${stdout}${stderr}`.trimEnd();
  console.log(`==== ${test}\n${printed}`);
  if (status !== 0)
    failed.push({
      test,
      end: printed.split("\n").slice(-40).join("\n"),
      how: signal ?? `exit code ${status}`,
    });
}
for (const { test, end, how } of failed)
  console.log(`---- ${test} failed: ${how}\n${end.replace(/^(\d+ passed)/gm, "  $1")}`);
if (failed.length) console.log(`failed: ${failed.map(({ test }) => test).join(", ")}`);
process.exitCode = failed.length ? 1 : 0;
