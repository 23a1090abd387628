// What the rows of a table are: a row of lines can select its line, a row of phases its phase. The
// names of the columns say it.

import type { Cell, Report, Table } from "../api";
import { phaseNames } from "../lib/phases";
import type { Thing } from "../state/selection";

/**
 * Columns whose value is something that can be selected. A column "what" is what its heading calls
 * it.
 */
const kinds: Record<string, keyof Thing> = {
  line: "line",
  site: "line",
  phase: "phase",
  module: "module",
  category: "category",
  process_id: "process",
};

/**
 * A phase as lanes have it: "evaluation test set" is an evaluation, a module runs in forward. What
 * no lane has, such as a whole step, is none.
 */
export const laneOf = (phase: string): string =>
  phase === "module"
    ? "forward"
    : (phaseNames.find((n) => phase === n || phase.startsWith(`${n} `)) ?? "");

/** What a row is, and what of it a click on the row selects: what its first column names. */
export interface Told {
  thing(row: Cell[]): Thing;
  picks(row: Cell[]): (Thing & { at?: number }) | null;
}

export function told(t: Table, report?: Report): Told {
  const kindOf = (i: number): keyof Thing | undefined => {
    const c = t.columns[i];
    return (
      c &&
      (c.name === "what"
        ? (kinds[c.title.toLowerCase()] ?? (t.name === "categories" ? "category" : undefined))
        : kinds[c.name])
    );
  };
  const known = t.columns
    .map((_, i) => [i, kindOf(i)] as const)
    .filter((k): k is readonly [number, keyof Thing] => k[1] !== undefined);
  const first = t.columns.findIndex((c) => c.title),
    own = kindOf(first),
    event = t.columns.findIndex((c) => c.name === "event" && c.unit === "count");
  const pid = t.name === "processes" ? t.columns.findIndex((c) => c.name === "pid") : -1,
    rank = t.name === "ranks" ? t.columns.findIndex((c) => c.name === "rank") : -1;
  const processOf = (row: Cell[]) =>
    report?.processes.find((p) =>
      pid >= 0
        ? String(p.pid) === String(row[pid])
        : rank >= 0 && String(p.rank) === String(row[rank]).replace(/\D/g, ""),
    )?.id;
  const thing = (row: Cell[]): Thing => {
    const made: Record<string, Cell> = {
      words: row.filter((c) => typeof c === "string").join(" "),
    };
    for (const [i, kind] of known)
      if (kind === "process" ? typeof row[i] === "number" : i === first || made[kind] === undefined)
        if (kind !== "phase" || row[i])
          // no phase is not known to be none: not all are recorded
          made[kind] = kind === "phase" ? laneOf(String(row[i])) : (row[i] ?? "");
    const process = processOf(row);
    return { ...made, ...(process !== undefined ? { process } : {}) } as Thing;
  };
  return {
    thing,
    picks(row) {
      if (event >= 0) return typeof row[event] === "number" ? { at: row[event] + 1 } : null;
      const of = thing(row);
      if (own && of[own]) return { [own]: of[own] } as Thing;
      return of.process !== undefined && (pid >= 0 || rank >= 0) ? { process: of.process } : null;
    },
  };
}
