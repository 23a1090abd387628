// What the engine found by comparing cells (internal/matrix, Comparison). Cells are places in the
// matrix's list.

export interface Interval {
  low: number;
  high: number;
}
export type Verdict = "more" | "less" | "same" | "unknown";

/**
 * What is known of the mean of a figure, cell by cell, in columns: how far its interval reaches
 * below and above it, in parts of 100,000 of it; null where no interval is known.
 */
export interface StatColumns {
  cell: number[];
  low: (number | null)[];
  high: (number | null)[];
  basis: ("one_run" | "identical" | "own" | "pooled")[];
}
export const meanParts = 100_000;
const ratioParts = 10_000;

export interface Pair {
  cell: number;
  base: number;
  ratio: number;
  interval?: Interval;
  verdict: Verdict;
}
export interface Ratio {
  kind: string;
  axis: string;
  value: string;
  base: string;
  title: string;
  figure: string;
  base_figure: string;
  ratio: number;
  interval?: Interval;
  verdict: Verdict;
  least: number;
  most: number;
  pairs: number;
  more: number;
  less: number;
  same: number;
  left: number;
  sentence: string;
  of: Pair[];
}
export interface Fit {
  figure: string;
  axis: string;
  sequence?: string;
  values: string[];
  form: string;
  terms: { name: string; value: number; interval?: Interval }[];
  r2: number;
  straight: boolean;
  freedom: number;
  points: { cell: number; sequence: number; residual: number }[];
  curve?: { x: number[]; fit: number[]; low?: number[]; high?: number[] };
  limit?: {
    of: string;
    memory_bytes: number;
    batch: number;
    low: number;
    high?: number;
    failed?: number;
    times: number;
    unlimited?: boolean;
    refuted?: boolean;
  };
  sentence: string;
}
export interface Difference {
  axis: string;
  cell: number;
  base: number;
  figure: string;
  bytes: number;
  note?: string;
  parts: { by: string; name: string; cell_bytes: number; base_bytes: number; label: string }[];
  rest: { by: string; explained_bytes: number }[];
}
/** How a cell stands beside an earlier result. */
export type Standing = "worse" | "unknown" | "gone" | "better" | "same" | "new";
export interface Change {
  cell: string;
  figure: string;
  standing: Standing;
  was?: number;
  is?: number;
  ratio?: number;
  interval?: Interval;
  limit: number;
}
export interface Regression {
  name: string;
  changes: Change[];
  counts: Partial<Record<Standing, number>>;
}
export interface Comparison {
  version: number;
  figure: string;
  device_figure: string;
  level: number;
  figures: { name: string; statistic: string }[];
  stats: Record<string, StatColumns>;
  ratios: Ratio[];
  fits: Fit[];
  differences: Difference[];
  advice: { kind: string; sentence: string; cells?: number[] }[];
  notes: string[];
  regression?: Regression;
}

/** The same as the page holds it: what there is much of lies in columns. */
export type PackedComparison = Omit<
  Comparison,
  "ratios" | "fits" | "differences" | "advice" | "notes"
> & {
  differences: Difference[] | null;
  advice: Comparison["advice"] | null;
  notes: string[] | null;
  ratios:
    | (Omit<Ratio, "of"> & {
        of?: {
          cell: number[];
          base: number[];
          ratio: number[];
          low: (number | null)[];
          high: (number | null)[];
          verdict: Verdict[];
        };
      })[]
    | null;
  fits:
    | (Omit<Fit, "points"> & {
        points: { cell: number[]; sequence?: number[]; residual: number[] };
      })[]
    | null;
};

/** A comparison out of its columns. */
export const unpacked = (packed: PackedComparison): Comparison => ({
  ...packed,
  differences: packed.differences ?? [],
  advice: packed.advice ?? [],
  notes: packed.notes ?? [],
  ratios: (packed.ratios ?? []).map((r) => ({
    ...r,
    of: (r.of?.cell ?? []).map((cell, i): Pair => {
      const { base, ratio, low, high, verdict } = r.of!,
        from = low[i],
        to = high[i];
      return {
        cell,
        base: base[i]!,
        ratio: ratio[i]! / ratioParts,
        verdict: verdict[i]!,
        ...(typeof from === "number" && typeof to === "number"
          ? { interval: { low: from / ratioParts, high: to / ratioParts } }
          : {}),
      };
    }),
  })),
  fits: (packed.fits ?? []).map((f) => ({
    ...f,
    points: f.points.cell.map((cell, i) => ({
      cell,
      sequence: f.points.sequence?.[i] ?? 0,
      residual: f.points.residual[i]!,
    })),
  })),
});
