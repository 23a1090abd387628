// The strip of phases below the timeline: what the program was doing, at any zoom.

export interface Stay { phase: string; start_ns: number; end_ns: number }

/** Phases that the strip shows, in the order of its legend. Modules and whole steps lie around or inside these. */
export const phaseNames = ["data", "forward", "backward", "optimizer", "evaluation", "checkpoint", "user"] as const;

/** Shares of one column of the strip, in the order of phaseNames; they add up to 1, or to 0 where nothing was seen. */
export type Shares = Float64Array;

/**
 * How much of each of n equal columns between from and to (ns) went to which phase; the stays do not
 * overlap (see exclusive). A report has an even selection of the steps of a long run: a column that
 * is partly known shows what is known, one that is not at all stays empty.
 */
export function shares(stays: Stay[], from: number, to: number, n: number): Shares[] {
  const columns = Array.from({ length: n }, () => new Float64Array(phaseNames.length));
  const width = (to - from) / n;
  if (!(width > 0)) return columns;
  for (const part of stays) {
    const kind = phaseNames.indexOf(part.phase as (typeof phaseNames)[number]);
    if (kind < 0 || part.end_ns < from || part.start_ns > to) continue;
    const first = Math.max(0, Math.floor((part.start_ns - from) / width)), last = Math.min(n - 1, Math.floor((part.end_ns - from) / width));
    for (let i = first; i <= last; i++) {
      const left = Math.max(part.start_ns, from + i * width), right = Math.min(part.end_ns, from + (i + 1) * width);
      columns[i]![kind]! += Math.max(right - left, 0);
    }
  }
  for (const column of columns) {
    const sum = column.reduce((a, b) => a + b, 0);
    if (sum > 0) column.forEach((v, i) => { column[i] = v / sum; });
  }
  return columns;
}

/** Phases of the strip alone, for exclusive and shares: a step or a module would hide the phases it lies around or in. */
export const stripped = <T extends Stay>(stays: T[]): T[] => stays.filter((s) => (phaseNames as readonly string[]).includes(s.phase));

/** Cuts nested stays into pieces that do not overlap: an outer one loses what lies inside it. */
export function exclusive(stays: Stay[]): Stay[] {
  const pieces: Stay[] = [], open: Stay[] = [];
  let at = -Infinity;
  const until = (time: number) => { // what was open from `at` to `time` goes to the innermost
    while (open.length > 0) {
      const inner = open[open.length - 1]!, end = Math.min(inner.end_ns, time);
      if (end > at) { pieces.push({ phase: inner.phase, start_ns: at, end_ns: end }); at = end; }
      if (inner.end_ns > time) return;
      open.pop();
    }
  };
  for (const stay of [...stays].sort((a, b) => a.start_ns - b.start_ns || b.end_ns - a.end_ns)) {
    until(stay.start_ns);
    at = stay.start_ns;
    open.push(stay);
  }
  until(Infinity);
  return pieces;
}
