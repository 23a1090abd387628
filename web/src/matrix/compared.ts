// What the engine found by comparing cells (internal/matrix, Comparison). Cells are places in the matrix's list.

export interface Interval { low: number; high: number }
export type Verdict = "more" | "less" | "same" | "unknown";

/** What is known of the mean of a figure, cell by cell, in columns; a cell without an interval has null. */
export interface StatColumns { cell: number[]; mean: number[]; low: (number | null)[]; high: (number | null)[]; basis: ("one_run" | "identical" | "own" | "pooled")[] }

export interface Pair { cell: number; base: number; ratio: number; interval?: Interval; verdict: Verdict }
export interface Ratio {
  kind: string; axis: string; value: string; base: string; title: string; figure: string; base_figure: string; ratio: number; interval?: Interval; verdict: Verdict;
  least: number; most: number; pairs: number; more: number; less: number; same: number; left: number; sentence: string; of?: Pair[];
}
export interface Fit {
  figure: string; axis: string; sequence?: string; values: string[]; form: string; terms: { name: string; value: number; interval?: Interval }[]; r2: number; straight: boolean; freedom: number;
  points: { cell: number; batch: number; sequence?: number; value: number; residual: number }[];
  curve?: { x: number[]; fit: number[]; low?: number[]; high?: number[] };
  limit?: { of: string; memory_bytes: number; batch: number; low: number; high?: number; failed?: number; times: number; unlimited?: boolean };
  sentence: string;
}
export interface Difference {
  axis: string; cell: number; base: number; figure: string; bytes: number; note?: string;
  parts: { by: string; name: string; cell_bytes: number; base_bytes: number; label: string }[]; rest: { by: string; explained_bytes: number }[];
}
export interface Comparison {
  version: number; figure: string; device_figure: string; level: number; figures: { name: string; statistic: string }[]; stats: Record<string, StatColumns>;
  ratios: Ratio[] | null; fits: Fit[] | null; differences: Difference[] | null; advice: { kind: string; sentence: string; cells?: number[] }[] | null; notes: string[] | null;
}
