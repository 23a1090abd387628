// Lists the functions of TypeScript files, `file:line<tab>lines<tab>name` each: scripts/limits.py
// asks for them.

import { readFileSync } from "node:fs";
import { parseSync } from "vite";

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/** Calls found for each function under a node; name is what the code around it calls it. */
function visit(node, name, found) {
  if (node === null || typeof node !== "object") return;
  const own = node.id?.name ?? node.key?.name ?? name;
  if (functions.has(node.type)) found(node, own);
  for (const inner of Object.values(node)) visit(inner, own, found);
}

for (const file of process.argv.slice(2)) {
  const source = readFileSync(file, "utf8");
  const lineOf = (offset) => source.slice(0, offset).split("\n").length;
  visit(parseSync(file, source).program, "anonymous", ({ start, end }, name) => {
    const lines = lineOf(end) - lineOf(start) + 1;
    console.log(`${file}:${lineOf(start)}\t${lines}\t${name}`);
  });
}
