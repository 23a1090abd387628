// The readings of one curve, which grow while a run is recorded and are known more finely where
// somebody looked.

import type { Columns } from "../lib/columns";

const most = 20_000; // points kept in memory; the server has the others

/** The readings of a curve, its times ascending. A counter is kept as what it gained per second. */
export class Readings {
  shown: Columns = { x: [], y: [] }; // what is drawn: coarse, and finer within detail
  detail: [number, number] | null = null;
  // readings up to here are a selection: the lowest and the highest of each part
  coarseUntil = -Infinity;
  private coarse: Columns = this.shown;
  // the newest reading of a counter, as it was read
  private last: { x: number; y: number } | null = null;

  constructor(readonly counter: boolean) {}

  /**
   * Everything up to now, of which thinned says whether it is a selection. Readings that came
   * meanwhile and are newer stay.
   */
  replace(all: Columns, thinned: boolean): void {
    const newer = this.after(all.x.at(-1) ?? -Infinity);
    this.coarse = this.shown = this.counter ? rates(all) : { x: [...all.x], y: [...all.y] };
    this.coarseUntil = thinned ? (all.x.at(-1) ?? -Infinity) : -Infinity;
    this.detail = null;
    const end = all.x.length - 1;
    if (this.counter && end >= 0 && (this.last === null || all.x[end]! >= this.last.x))
      this.last = { x: all.x[end]!, y: all.y[end]! };
    push(this.coarse, newer);
  }

  /** New readings; those that are known already are left out. */
  append({ x, y }: Columns): void {
    let fresh: Columns = { x: [], y: [] };
    const newest = this.last?.x ?? this.coarse.x.at(-1) ?? -Infinity;
    x.forEach((t, i) => {
      if (t > newest) {
        fresh.x.push(t);
        fresh.y.push(y[i]!);
      }
    });
    if (fresh.x.length === 0) return;
    if (this.counter) {
      const before = this.last;
      this.last = { x: fresh.x.at(-1)!, y: fresh.y.at(-1)! };
      fresh = rates(before ? { x: [before.x, ...fresh.x], y: [before.y, ...fresh.y] } : fresh);
    }
    push(this.coarse, fresh);
    if (this.shown !== this.coarse) push(this.shown, fresh);
    if (this.coarse.x.length > most) this.thin();
  }

  /** A finer selection, or all, of a stretch; what is coarser there gives way. */
  refine(finer: Columns, from: number, to: number): void {
    const kept = this.counter ? rates(finer) : finer,
      first = kept.x[0],
      end = kept.x.at(-1);
    if (first === undefined || end === undefined) return;
    const i = at(this.coarse.x, first),
      j = past(this.coarse.x, end);
    const part = (list: number[], fine: number[]) => [
      ...list.slice(0, i),
      ...fine,
      ...list.slice(j),
    ];
    this.shown = { x: part(this.coarse.x, kept.x), y: part(this.coarse.y, kept.y) };
    this.detail = [from, to];
  }

  /** Whether a stretch is known only coarsely: the server has more of it. */
  wants([from, to]: [number, number]): boolean {
    if (from >= this.coarseUntil) return false;
    const known = this.detail;
    return !(
      known &&
      known[0] <= from &&
      known[1] >= Math.min(to, this.coarseUntil) &&
      known[1] - known[0] <= 4 * (to - from)
    );
  }

  private after(time: number): Columns {
    const i = past(this.coarse.x, time);
    return { x: this.coarse.x.slice(i), y: this.coarse.y.slice(i) };
  }

  /** Of the older half the lowest and the highest of every four readings stay. */
  private thin(): void {
    const half = this.coarse.x.length >> 1,
      { x, y } = this.coarse,
      kept: Columns = { x: [], y: [] };
    for (let i = 0; i < half; i += 4) {
      let low = i,
        high = i;
      for (let k = i; k < Math.min(i + 4, half); k++) {
        if (y[k]! < y[low]!) low = k;
        if (y[k]! > y[high]!) high = k;
      }
      for (const k of [...new Set([low, high])].sort((a, b) => a - b)) {
        kept.x.push(x[k]!);
        kept.y.push(y[k]!);
      }
    }
    this.coarseUntil = Math.max(this.coarseUntil, x[half - 1]!);
    this.coarse = this.shown = {
      x: [...kept.x, ...x.slice(half)],
      y: [...kept.y, ...y.slice(half)],
    };
    this.detail = null;
  }
}

function push(to: Columns, more: Columns): void {
  for (let i = 0; i < more.x.length; i++) {
    to.x.push(more.x[i]!);
    to.y.push(more.y[i]!);
  }
}

/** What a counter gained per second up to each reading; nothing where it starts again. */
function rates({ x, y }: Columns): Columns {
  const out: Columns = { x: [], y: [] };
  for (let i = 1; i < x.length; i++) {
    const seconds = (x[i]! - x[i - 1]!) / 1e9;
    if (seconds > 0) {
      out.x.push(x[i]!);
      out.y.push(Math.max(y[i]! - y[i - 1]!, 0) / seconds);
    }
  }
  return out;
}

/** The first place whose time is not before a moment. */
export function at(x: ArrayLike<number>, time: number): number {
  let low = 0,
    high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first place whose time is after a moment. */
function past(x: ArrayLike<number>, time: number): number {
  let low = 0,
    high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The highest reading in a stretch; null where it has none. */
export function highestIn({ x, y }: Columns, [from, to]: [number, number]): number | null {
  let best: number | null = null;
  for (let i = at(x, from), end = past(x, to); i < end; i++)
    if (best === null || y[i]! > best) best = y[i]!;
  return best;
}

/**
 * What a curve does in a stretch: lowest, highest, mean over time along its line, and its values at
 * both ends. Null where it has no reading in or around it.
 */
export interface Figures {
  low: number;
  high: number;
  mean: number;
  begin: number | null;
  end: number | null;
  readings: number;
}

export function figures({ x, y }: Columns, [from, to]: [number, number]): Figures | null {
  const i = at(x, from),
    j = past(x, to),
    begin = between(x, y, from),
    end = between(x, y, to);
  const inner = y.slice(i, j),
    ends = [begin, end].filter((v): v is number => v !== null);
  if (inner.length + ends.length === 0) return null;
  const xs = [...(begin !== null ? [from] : []), ...x.slice(i, j), ...(end !== null ? [to] : [])],
    ys = [...(begin !== null ? [begin] : []), ...inner, ...(end !== null ? [end] : [])];
  let area = 0;
  for (let k = 1; k < xs.length; k++) area += ((ys[k]! + ys[k - 1]!) / 2) * (xs[k]! - xs[k - 1]!);
  const time = xs.at(-1)! - xs[0]!;
  let low = Infinity,
    high = -Infinity;
  for (const v of ys) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return {
    low,
    high,
    mean: time > 0 ? area / time : ys[0]!,
    begin: begin ?? ys[0]!,
    end: end ?? ys.at(-1)!,
    readings: inner.length,
  };
}

/** The value of the line at a moment; null outside of the readings. */
export function between(x: number[], y: number[], time: number): number | null {
  const i = at(x, time);
  if (i === x.length) return null;
  if (x[i] === time) return y[i]!;
  if (i === 0) return null;
  return y[i - 1]! + ((y[i]! - y[i - 1]!) * (time - x[i - 1]!)) / (x[i]! - x[i - 1]!);
}
