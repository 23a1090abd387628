/** Curves with times of their own, put on one axis: a value is null where a curve has none. */
export function align(curves: { x: number[]; y: number[] }[]): { x: number[]; ys: (number | null)[][] } {
  const x = [...new Set(curves.flatMap((c) => c.x))].sort((a, b) => a - b);
  const ys = curves.map((c) => {
    const at = new Map(c.x.map((t, i) => [t, c.y[i] ?? null]));
    return x.map((t) => at.get(t) ?? null);
  });
  return { x, ys };
}

/** Least squares through the points after the first fifth; null where they say nothing. */
export function line(points: [number, number][]): { slope: number; at: (x: number) => number } | null {
  const kept = points.slice(Math.floor(points.length / 5));
  if (kept.length < 4) return null;
  const n = kept.length;
  const mx = kept.reduce((s, p) => s + p[0], 0) / n, my = kept.reduce((s, p) => s + p[1], 0) / n;
  const sxx = kept.reduce((s, p) => s + (p[0] - mx) ** 2, 0);
  if (sxx === 0) return null;
  const slope = kept.reduce((s, p) => s + (p[0] - mx) * (p[1] - my), 0) / sxx;
  return { slope, at: (x) => my + slope * (x - mx) };
}

/** Order of two cells: numbers by size, texts by letters, absent last. */
export function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
