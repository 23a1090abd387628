// Columns of numbers: curves on one axis, a value at a moment, rates, a line through points, order.

export interface Columns {
  x: number[];
  y: number[];
}

/** Curves with times of their own, put on one axis: a value is null where a curve has none. */
export function align(curves: Columns[]): { x: number[]; ys: (number | null)[][] } {
  const x = Float64Array.from(new Set(curves.flatMap((c) => c.x))).sort();
  const ys = curves.map((c) => {
    const at = new Map(c.x.map((t, i) => [t, c.y[i] ?? null]));
    return Array.from(x, (t) => at.get(t) ?? null);
  });
  return { x: [...x], ys };
}

/**
 * The value that holds at a moment: the last reading up to it; null before the first. x ascends.
 */
export function valueAt({ x, y }: Columns, at: number): number | null {
  let low = 0,
    high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (y[low - 1] ?? null);
}

/** The highest value and its place; null of an empty curve. */
export function highest({ x, y }: Columns): { x: number; y: number } | null {
  let best = -1;
  y.forEach((v, i) => {
    if (best < 0 || v > y[best]!) best = i;
  });
  return best < 0 ? null : { x: x[best]!, y: y[best]! };
}

/**
 * What a counter gained per second between its readings (x in ns); a counter that starts again
 * gains nothing.
 */
export function rate({ x, y }: Columns): Columns {
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

/** At most n columns of equal width, each with its highest value: the shape of a curve, small. */
export function shape({ x, y }: Columns, n: number): Columns {
  const first = x[0],
    last = x[x.length - 1];
  if (first === undefined || last === undefined || x.length <= n) return { x: [...x], y: [...y] };
  const out: Columns = { x: [], y: [] };
  let column = -1;
  for (let i = 0; i < x.length; i++) {
    const at = Math.min(n - 1, Math.floor(((x[i]! - first) / (last - first || 1)) * n));
    if (at !== column) {
      out.x.push(x[i]!);
      out.y.push(y[i]!);
      column = at;
    } else if (y[i]! > out.y[out.y.length - 1]!) out.y[out.y.length - 1] = y[i]!;
  }
  return out;
}

/**
 * Least squares through the points after the first fifth, the warm-up; null where they say nothing.
 */
export function line(
  points: [number, number][],
): { slope: number; at: (x: number) => number; from: number } | null {
  const kept = points.slice(Math.floor(points.length / 5));
  const n = kept.length;
  if (n < 4) return null;
  const mx = kept.reduce((s, p) => s + p[0], 0) / n,
    my = kept.reduce((s, p) => s + p[1], 0) / n;
  const sxx = kept.reduce((s, p) => s + (p[0] - mx) ** 2, 0);
  if (sxx === 0) return null;
  const slope = kept.reduce((s, p) => s + (p[0] - mx) * (p[1] - my), 0) / sxx;
  return { slope, at: (x) => my + slope * (x - mx), from: kept[0]![0] };
}

/** Order of two cells: numbers by size, texts by letters and the numbers in them. */
export function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** Rows ordered by one of their cells; absent stays last either way, equals keep their order. */
export function sorted<T extends (string | number | null)[]>(
  rows: T[],
  by: number,
  down: boolean,
): T[] {
  return rows.toSorted((a, b) => {
    const l = a[by] ?? null,
      r = b[by] ?? null;
    return l === null || r === null ? compare(l, r) : compare(l, r) * (down ? -1 : 1);
  });
}
