// The strip of phases below the timeline: what the program was doing, at any zoom.

/** A stretch of an x axis, in whatever unit it has; a span that the program named has its name. */
export interface Stay {
  phase: string;
  from: number;
  to: number;
  name?: string;
}

/** What people call a stay. */
export const called = (stay: Stay): string => stay.name || stay.phase;

/**
 * Phases that the strip shows, in the order of its legend. Modules and whole steps lie around or
 * inside these.
 */
export const phaseNames = [
  "data",
  "forward",
  "backward",
  "optimizer",
  "evaluation",
  "checkpoint",
  "user",
] as const;

/**
 * Shares of one column of the strip, in the order of phaseNames; they add up to 1, or to 0 where
 * nothing was seen.
 */
export type Shares = Float64Array;

/**
 * How much of each of n equal columns between from and to went to which phase; the stays do not
 * overlap (see exclusive). A report has an even selection of the steps of a long run: a column that
 * is partly known shows what is known, one that is not at all stays empty.
 */
export function shares(stays: Stay[], from: number, to: number, n: number): Shares[] {
  const columns = Array.from({ length: n }, () => new Float64Array(phaseNames.length));
  const width = (to - from) / n;
  if (!(width > 0)) return columns;
  for (const part of stays) {
    const kind = phaseNames.indexOf(part.phase as (typeof phaseNames)[number]);
    if (kind < 0 || part.to < from || part.from > to) continue;
    const first = Math.max(0, Math.floor((part.from - from) / width)),
      last = Math.min(n - 1, Math.floor((part.to - from) / width));
    for (let i = first; i <= last; i++) {
      const left = Math.max(part.from, from + i * width),
        right = Math.min(part.to, from + (i + 1) * width);
      columns[i]![kind]! += Math.max(right - left, 0);
    }
  }
  for (const column of columns) {
    const sum = column.reduce((a, b) => a + b, 0);
    if (sum > 0)
      column.forEach((v, i) => {
        column[i] = v / sum;
      });
  }
  return columns;
}

/**
 * The phase that a column shows at a height, as a share of it from the foot: the shares lie on each
 * other in the order of phaseNames.
 */
export function phaseAt(stays: Stay[], from: number, to: number, height: number): string {
  const part = shares(stays, from, to, 1)[0]!;
  let sum = 0;
  for (const [i, share] of part.entries())
    if (share > 0 && (sum += share) >= height - 1e-9) return phaseNames[i]!;
  return "";
}

/**
 * Phases of the strip alone, for exclusive and shares: a step or a module would hide the phases it
 * lies around or in.
 */
export const stripped = <T extends { phase: string }>(stays: T[]): T[] =>
  stays.filter((s) => (phaseNames as readonly string[]).includes(s.phase));

/** Cuts nested stays into pieces that do not overlap: an outer one loses what lies inside it. */
export function exclusive(stays: Stay[]): Stay[] {
  const pieces: Stay[] = [],
    open: Stay[] = [];
  let at = -Infinity;
  const until = (time: number) => {
    // what was open from `at` to `time` goes to the innermost
    while (open.length > 0) {
      const inner = open[open.length - 1]!,
        end = Math.min(inner.to, time);
      if (end > at) {
        pieces.push({ ...inner, from: at, to: end });
        at = end;
      }
      if (inner.to > time) return;
      open.pop();
    }
  };
  for (const stay of [...stays].sort((a, b) => a.from - b.from || b.to - a.to)) {
    until(stay.from);
    at = stay.from;
    open.push(stay);
  }
  until(Infinity);
  return pieces;
}
