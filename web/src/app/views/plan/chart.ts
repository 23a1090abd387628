// What each GPU has, with its interval: tokens of a server's cache, else the room that is left; as
// SVG, so that it can be saved.

import type { PlanAnswer, Row } from "../../../api";
import { canvas, fittedInside, legend, s, type Attributes } from "../../../draw/svg";
import { theme } from "../../../draw/theme";
import { bytes, count, tick } from "../../../lib/format";
import { ticks } from "../../../lib/scales";

interface Measure {
  title: string;
  unit: "count" | "bytes";
  of(row: Row): readonly [low: number, figure: number, high: number];
  wanted?: number; // what was asked for
}

/** What is drawn: tokens where there are any, else the room. */
export function measureOf(r: PlanAnswer): Measure {
  if (r.rows.some((row) => row.tokens))
    return {
      title: "Tokens that the cache holds",
      unit: "count",
      of: ({ tokens }) => [tokens?.low ?? 0, tokens?.figure ?? 0, tokens?.high ?? 0],
      wanted: (r.use.users ?? 0) * r.use.seq,
    };
  return {
    title: "Memory that is left on each GPU",
    unit: "bytes",
    of: ({ room }) => [room.low_bytes, room.bytes, room.high_bytes],
  };
}

const rowsShown = 24,
  high = 22; // of a row

/** The rows that are drawn: in the order of the table, those that have something at all. */
export const drawn = (r: PlanAnswer): Row[] =>
  r.rows.filter((row) => row.verdict !== "no" && measureOf(r).of(row)[2] > 0).slice(0, rowsShown);

const inks: Record<string, string> = { fits: "fine", likely: "warning", unlikely: "muted" };
const nameOf = (row: Row) => row.machine?.instance ?? row.gpu;
const shown = (value: number, unit: Measure["unit"]) =>
  unit === "bytes" ? bytes(value) : count(value);

/** null: no GPU has anything to draw. */
export function planChart(r: PlanAnswer, width: number): SVGSVGElement | null {
  const rows = drawn(r),
    m = measureOf(r),
    colour = theme();
  if (rows.length === 0) return null;
  const key = legend(
    [
      ...["fits", "likely", "unlikely"]
        .filter((v) => rows.some((row) => row.verdict === v))
        .map((v) => ({ ink: colour(inks[v]!), text: v })),
      { ink: colour("text"), text: "from the least to the most", mark: "—" },
      ...(m.wanted ? [{ ink: colour("limit"), text: "asked for", dash: true }] : []),
    ],
    width,
  );
  const left = Math.min(150, width * 0.3),
    right = 16,
    top = key.height + 4,
    across = width - left - right,
    foot = top + rows.length * high;
  const most = Math.max(...rows.map((row) => m.of(row)[2]), m.wanted ?? 0, 1) * 1.04,
    least = Math.max(Math.min(...rows.map((row) => m.of(row)[0]), 0), -most / 3);
  const x = (v: number) =>
    left + ((Math.min(Math.max(v, least), most) - least) / (most - least)) * across;
  const svg = canvas(
    width,
    foot + 26,
    `${m.title}: ${rows.map((row) => `${nameOf(row)} ${shown(m.of(row)[1], m.unit)}`).join(", ")}`,
  );
  svg.append(key.element);
  for (const v of ticks(most, m.unit, Math.max(2, Math.floor(across / 90))))
    svg.append(
      line({ x1: x(v), x2: x(v), y1: top, y2: foot, stroke: colour(v === 0 ? "muted" : "grid") }),
      s(
        "text",
        { x: x(v), y: foot + 17, "text-anchor": "middle", fill: colour("muted"), "font-size": 11 },
        tick(v, m.unit),
      ),
    );
  rows.forEach((row, i) => svg.append(bar(row, m, { x, y: top + i * high, left })));
  if (m.wanted)
    svg.append(
      line({
        x1: x(m.wanted),
        x2: x(m.wanted),
        y1: top,
        y2: foot,
        stroke: colour("limit"),
        "stroke-width": 1.5,
        "stroke-dasharray": "5 4",
      }),
    );
  return svg;
}

const line = (attributes: Attributes): SVGElement => s("line", attributes);

/** One GPU: its name, a bar up to the figure, and a line over the interval. */
function bar(
  row: Row,
  m: Measure,
  { x, y, left }: { x(v: number): number; y: number; left: number },
): SVGElement {
  const colour = theme(),
    [low, figure, most] = m.of(row),
    middle = y + high / 2;
  const from = Math.min(x(0), x(figure));
  const said =
    `${nameOf(row)}: ${row.verdict}, ${shown(figure, m.unit)} ` +
    `(${shown(low, m.unit)} to ${shown(most, m.unit)})`;
  return s(
    "g",
    {},
    s("title", {}, said),
    fittedInside(nameOf(row), left - 14, {
      x: left - 10,
      y: middle + 4,
      "text-anchor": "end",
      fill: colour("text"),
    }),
    s("rect", {
      x: from,
      y: y + 5,
      width: Math.max(Math.abs(x(figure) - x(0)), 1),
      height: high - 10,
      rx: 3,
      fill: colour(inks[row.verdict] ?? "muted"),
      "fill-opacity": 0.75,
    }),
    s("path", {
      d:
        `M${x(low).toFixed(1)} ${middle}H${x(most).toFixed(1)}` +
        `M${x(low).toFixed(1)} ${middle - 4}v8M${x(most).toFixed(1)} ${middle - 4}v8`,
      stroke: colour("text"),
      "stroke-width": 1.3,
      fill: "none",
    }),
  );
}
