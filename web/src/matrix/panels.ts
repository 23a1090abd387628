// How cells are laid out: which axes tell them apart in a chart, and which get panels of their own.

import { named, type Cell, type Model, type Choice } from "./model";

/** Axes of which the cells have more than one value, in the matrix's order. */
export const varied = (model: Model, cells: Cell[]): number[] =>
  model.axes.map((_, a) => a).filter((a) => cells.some((c) => c.at[a] !== cells[0]!.at[a]));

/** The values of an axis that the cells have, in the axis's order. */
export const present = (cells: Cell[], axis: number): number[] =>
  axis < 0 ? [0] : [...new Set(cells.map((c) => c.at[axis]!))].sort((a, b) => a - b);

export interface Panel {
  title: string;
  cells: Cell[];
}
export interface Split {
  panels: Panel[];
  inner: number; // as many panels as this belong together: those of the last axis that made them
  merged: number[]; // axes that differ within one place of a chart: what is drawn there is a mean
}

/**
 * Cells in panels: by the axes that a chart does not use, as long as no more than so many panels
 * come of it. An axis that the reader chose is the only one; "none" of them gives one panel. Where
 * cells compute comes first: a mean over hosts and devices says nothing.
 */
export function split(
  model: Model,
  cells: Cell[],
  used: number[],
  choice: string,
  most: number,
): Split {
  const rest = varied(model, cells).filter((a) => !used.includes(a));
  const wanted =
    choice === "none"
      ? []
      : choice === ""
        ? rest.toSorted((a, b) => Number(b === model.device) - Number(a === model.device))
        : rest.filter((a) => model.axes[a]!.name === choice);
  const by: number[] = [];
  for (const axis of wanted)
    if (grouped(cells, [...by, axis]).size <= (choice ? 48 : most)) by.push(axis);
  by.sort((a, b) => a - b);
  const panels = [...grouped(cells, by).values()].map((some) => ({
    title: by.map((a) => named(model, a, some[0]!.at[a]!)).join(" · "),
    cells: some,
  }));
  const last = by[by.length - 1],
    inner = last === undefined ? 1 : present(cells, last).length;
  return {
    panels,
    inner: panels.length % inner === 0 ? inner : 1,
    merged: rest.filter((a) => !by.includes(a)),
  };
}

/** Cells by their values of some axes, in the axes' order. */
export function grouped(cells: Cell[], by: number[]): Map<string, Cell[]> {
  const found = new Map<string, Cell[]>();
  const sorted = cells.toSorted((a, b) =>
    by.reduce((d, axis) => d || a.at[axis]! - b.at[axis]!, 0),
  );
  for (const c of sorted) {
    const id = by.map((a) => c.at[a]).join();
    found.get(id)?.push(c) ?? found.set(id, [c]);
  }
  return found;
}

/** What of the cells of one place is drawn: of one cell its own value, of several the mean. */
export interface Spot {
  value: number;
  low: number;
  high: number;
  each: number[];
}

export function spot(model: Model, cells: Cell[], figure: string, statistic: Choice): Spot | null {
  const values = cells.flatMap((c) => model.value(c, figure, statistic) ?? []);
  if (values.length < 2) return values[0] ?? null;
  const each = values.map((v) => v.value);
  return {
    value: each.reduce((sum, v) => sum + v, 0) / each.length,
    low: Math.min(...each),
    high: Math.max(...each),
    each,
  };
}

/**
 * How many panels stand in a row: those that belong together beside each other where there is room,
 * else in rows that are alike.
 */
export function inRow({ panels, inner }: Pick<Split, "panels" | "inner">, room: number): number {
  const most = Math.max(1, Math.min(panels.length, Math.floor(room))),
    whole = Math.floor(most / inner) * inner;
  return inner > 1 && whole > most / 2
    ? whole
    : Math.ceil(panels.length / Math.ceil(panels.length / most));
}
