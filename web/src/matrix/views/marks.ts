// What the marks of every chart have in common: how they are told, and the sign of a cell without a
// figure.

import { fittedInside, s, wide } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { count, quantity } from "../../lib/format";
import { failuresOf, outcomes, type Cell, type Model } from "../model";
import type { Spot } from "../panels";
import { figureTitle, type View } from "../state";
import type { Mark } from "./picture";

/** A mark in words: of one cell its figure, how sure it is and its trials; of several how many. */
export function told(
  model: Model,
  view: View,
  cells: Cell[],
  found: Spot | null,
  x: number,
  y: number,
): Mark {
  const cell = cells[0]!,
    unit = model.about(view.figure).unit,
    failed = cells.filter((c) => c.outcome !== "done");
  const title =
    cells.length === 1 ? model.title(cell) : `${count(cells.length)} cells: ${model.common(cells)}`;
  const lines: string[] = [];
  if (found)
    lines.push(
      `${figureTitle(model, view)}: ` +
        `${quantity(found.value, unit)}${cells.length > 1 ? " on average" : ""}`,
    );
  const value = cells.length === 1 ? model.value(cell, view.figure, view.statistic) : null;
  if (value) lines.push(...sure(value, unit));
  else if (found && found.high > found.low)
    lines.push(`from ${quantity(found.low, unit)} to ${quantity(found.high, unit)}`);
  if (failed.length > 0)
    lines.push(
      cells.length === 1
        ? outcomes[cell.outcome].title
        : `${count(failed.length)} without a figure: ` +
            `${[...new Set(failed.map((c) => outcomes[c.outcome].title))].join(", ")}`,
    );
  if (cells.length === 1 && cell.reason) lines.push(cell.reason);
  if (!found && failed.length === 0)
    lines.push(`${model.about(view.figure).title} was not measured here.`);
  return { title, lines, cells, x, y };
}

/** How sure a value is. */
export function sure(
  { low, high, spread, each, label }: NonNullable<ReturnType<Model["value"]>>,
  unit: Parameters<typeof quantity>[1],
): string[] {
  const range = `${quantity(low, unit)} to ${quantity(high, unit)}`;
  const words =
    spread === "interval"
      ? `95 % interval ${range}, ${count(each.length)} trials`
      : spread === "one"
        ? "one trial: its spread is not known"
        : `${count(each.length)} trials, ${range}`;
  return [label && label !== "measured" ? `${words} (${label})` : words];
}

/** The sign of a cell without a figure: a hatched field with what became of it. */
export function failedMark(
  cell: Cell,
  x: number,
  y: number,
  width: number,
  height: number,
): SVGElement {
  const colour = theme(),
    { mark, ink } = outcomes[cell.outcome === "done" ? "unmeasured" : cell.outcome],
    lines: string[] = [];
  for (let at = -height; at < width; at += 6) {
    const from = Math.max(0, at),
      to = Math.min(width, at + height);
    if (to > from)
      lines.push(
        `M${(x + from).toFixed(1)} ` +
          `${(y + height - (from - at)).toFixed(1)}L${(x + to).toFixed(1)} ` +
          `${(y + height - (to - at)).toFixed(1)}`,
      );
  }
  const size = Math.min(13, Math.max(8, width));
  return s(
    "g",
    {},
    s("rect", {
      x,
      y,
      width,
      height,
      rx: Math.min(3, width / 4),
      fill: colour("track"),
      "data-edge": "",
    }),
    s("path", { d: lines.join(""), stroke: colour("edge"), "stroke-width": 1.5 }),
    width >= wide(mark, size) - 3 &&
      s(
        "text",
        {
          x: x + width / 2,
          y: y + height / 2 + size * 0.36,
          "text-anchor": "middle",
          "font-size": size,
          "font-weight": 700,
          fill: colour(ink),
        },
        mark,
      ),
  );
}

/** What each kind of failure among the cells is drawn as, for a legend. */
export const failureKeys = (cells: Cell[]): { ink: string; text: string; mark: string }[] =>
  failuresOf(cells).map((o) => ({
    ink: theme()(outcomes[o].ink),
    text: outcomes[o].title,
    mark: outcomes[o].mark,
  }));

/** The title of a panel among several. */
export const titleOf = (title: string, width: number, x: number, y: number): SVGElement =>
  fittedInside(title, width, { x, y, "font-weight": 620, fill: theme()("text") });
