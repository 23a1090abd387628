import { canvas, grid, halo, inks, legend, s, up, whisker, wide, type Frame } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { bytes, count, quantity, tick } from "../../lib/format";
import { fromZero, ticks } from "../../lib/scales";
import { h } from "../../views/dom";
import type { Fit } from "../compared";
import { memory, type Cell, type Model } from "../model";
import { inRow, present, split, spot, type Spot } from "../panels";
import { figureTitle, kept, type Page, type View } from "../state";
import { failedMark, failureKeys, titleOf, told } from "./marks";
import { axisChoices, caveats, picture, select, toggle, type Drawn, type Mark } from "./picture";

const spanned = "; the line on it goes from the lowest to the highest cell";
const scaleRoom = 66,
  titleRoom = 24,
  labelRoom = 40,
  between = 24,
  mostPanels = 24;

/** The chosen figure against an axis of numbers, with the line through it where one was fitted. */
export function scaling(model: Model, page: Page): HTMLElement | null {
  const numeric = axisChoices(model, undefined, true),
    fits = model.comparison?.fits ?? [];
  if (numeric.length === 0) return null;
  const whole = picture(model, page, {
    id: "scaling",
    title: "How it grows",
    tools: [
      select(page, "along", "Along", () => numeric),
      select(page, "colour", "Colour by", () => axisChoices(model, "nothing")),
      select(page, "panels", "Panels by", () => [
        ["", "what is left"],
        ["none", "nothing"],
        ...axisChoices(model),
      ]),
      toggle(page, "free", "each panel its own scale"),
      fits.some((f) => f.limit?.batch) && toggle(page, "far", "up to the predicted limit"),
    ],
    follow: ["along", "colour", "panels", "free", "far"],
    caption: (view) => `${figureTitle(model, view)} against ${view.along}`,
    draw: (width, view) => draw(model, view, width),
  });
  whole.append(sentences(model, page, fits));
  return whole;
}

/** What was fitted, in words. */
function sentences(model: Model, page: Page, fits: Fit[]): HTMLElement {
  const list = h("ul", { class: "notes" }),
    title = h("summary", {}),
    whole = h("details", { class: "calls" }, title, list);
  page.follow(["only", "state"], (view) => {
    const cells = new Set(kept(model, view).map((c) => c.index)),
      some = fits.filter((f) => f.points.some((p) => cells.has(p.cell)));
    list.replaceChildren(...some.map((f) => h("li", {}, f.sentence)));
    title.textContent =
      some.length === 1 ? "The line in words" : `${count(some.length)} lines in words`;
    whole.hidden = some.length === 0;
  });
  return whole;
}

interface Point {
  x: number;
  cells: Cell[];
  spot: Spot | null;
}
interface Curve {
  colour: number;
  points: Point[];
  fit: Fit | null;
}

function draw(model: Model, view: View, width: number): Drawn | string {
  const cells = kept(model, view),
    along = model.axis(view.along),
    numbers = model.numbers(along);
  if (cells.length === 0) return "No cell passes the filters.";
  if (!numbers) return "Choose an axis of numbers.";
  const colourAxis = model.axis(view.colour) === along ? -1 : model.axis(view.colour);
  const parts = split(
    model,
    cells,
    [along, colourAxis].filter((a) => a >= 0),
    view.panels,
    mostPanels,
  );
  const { panels, merged } = parts;
  const colours = present(cells, colourAxis),
    all = colourAxis < 0 ? [theme()("curve-0")] : inks(model.axes[colourAxis]!.values.length);
  const found = panels.map((p) =>
    colours.flatMap((c) => {
      const some = p.cells.filter((x) => colourAxis < 0 || x.at[colourAxis] === c);
      return some.length
        ? [curveOf(model, view, some, along, numbers, colourAxis < 0 ? 0 : c)]
        : [];
    }),
  );
  const unit = model.about(view.figure).unit,
    colour = theme();
  const reach = (curves: Curve[]) => reachOf(curves, view.far);
  const farthest = reach(found.flat()),
    highest = view.far
      ? Math.max(...found.map((c) => top(c, reach(c))))
      : top(found.flat(), farthest);
  const { own, room, across, down, each, tall } = layoutOf(parts, view.free, width);
  const lines = found.flat().some((c) => c.fit);
  const key = legend(
    [
      ...(colourAxis < 0
        ? []
        : colours.map((c) => ({ ink: all[c]!, text: model.shown(colourAxis, c) }))),
      ...(lines ? [{ ink: colour("muted"), text: "prediction", dash: true }] : []),
      ...failureKeys(cells),
    ],
    width,
  );
  const row = titleRoom + tall + labelRoom,
    svg = canvas(
      width,
      key.height + down * row,
      `${figureTitle(model, view)} against ${view.along}: ${found.flat().length} curves`,
    );
  svg.append(key.element);
  const marks = new Map<SVGElement, Mark>();
  panels.forEach((panel, i) => {
    const curves = found[i]!,
      to = view.free || view.far ? reach(curves) : farthest,
      left = room + (i % across) * (each + between + own) + own,
      y = key.height + Math.floor(i / across) * row;
    const top_value = view.free ? top(curves, to) : highest,
      frame: Frame = { left, top: y + titleRoom, width: each, height: tall, top_value, unit };
    if (panel.title) svg.append(titleOf(panel.title, each, left, y + 15));
    svg.append(grid(frame, view.free || i % across === 0), below(frame, to, curves, view.along));
    for (const [n, c] of curves.entries()) svg.append(line(c, n, frame, to, all[c.colour]!));
    for (const [n, c] of curves.entries())
      for (const p of c.points)
        svg.append(pointMark(model, view, c, n, p, frame, to, all[c.colour]!, marks));
    svg.append(...svg.querySelectorAll("[data-above]")); // texts lie on the lines of all curves
  });
  const note = [
    caveats(model, view, cells, merged, spanned),
    !lines && noFit(model, view, isAsked(model, view), merged.length > 0),
  ]
    .filter(Boolean)
    .join(" ");
  return { svg, marks, ...(note ? { note } : {}) };
}

/** How the panels lie: so many in a row, so wide and tall, with a scale each or one for all. */
function layoutOf(parts: ReturnType<typeof split>, free: boolean, width: number) {
  const own = free ? scaleRoom : 0,
    room = free ? 0 : scaleRoom,
    least = 230,
    across = inRow(parts, (width - room + between) / (least + between + own)),
    down = Math.ceil(parts.panels.length / across),
    each = (width - room - (across - 1) * between) / across - own,
    tall = parts.panels.length === 1 ? 320 : down > 2 ? 150 : 190;
  return { own, room, across, down, each, tall };
}

/** How far to the right a picture goes; far: up to the batch that is foretold to fit. */
const reachOf = (curves: Curve[], far: boolean): number =>
  Math.max(...curves.flatMap((c) => [...c.points.map((p) => p.x), far ? limitOf(c) : 0])) * 1.06;

/** The upper end of the scale of a picture up to some x. */
const top = (curves: Curve[], to: number): number =>
  fromZero(0, Math.max(0, ...curves.map((c) => summit(c, to))))[1];

/** Whether another statistic than the usual one was chosen. */
const isAsked = (model: Model, view: View): boolean =>
  model.statistic(view.figure, view.statistic) !== model.statistic(view.figure, "");

/** The points of some cells along an axis of numbers, with the prediction that is made of them. */
function curveOf(
  model: Model,
  view: View,
  cells: Cell[],
  along: number,
  numbers: number[],
  colour: number,
): Curve {
  const points = present(cells, along).map((v): Point => {
    const of = cells.filter((x) => x.at[along] === v);
    return { x: numbers[v]!, cells: of, spot: spot(model, of, view.figure, view.statistic) };
  });
  return { colour, points: points.sort((a, b) => a.x - b.x), fit: fitOf(model, view, cells) };
}

/**
 * Where a curve's line ends in a picture up to some x: a prediction goes no further than the limit.
 */
const endOf = (c: Curve, to: number): number => (limitOf(c) ? Math.min(to, limitOf(c)) : to);

/**
 * The largest batch that is foretold to fit; 0 where none is, or where what was measured says
 * otherwise.
 */
const limitOf = ({ fit }: Curve): number =>
  fit?.limit && !fit.limit.refuted ? fit.limit.batch : 0;

/** The highest that a picture up to some x shows of a curve. */
const summit = (c: Curve, to: number): number =>
  Math.max(
    ...c.points.map((p) => p.spot?.high ?? 0),
    ...(c.fit?.curve ? stretch(c.fit.curve, 0, endOf(c, to)).map((p) => p.fit) : []),
  );

/** Why there is no line where a reader may look for one. */
function noFit(model: Model, view: View, asked: boolean, merged: boolean): string {
  const fits = model.comparison?.fits ?? [];
  if (fits.length === 0)
    return !model.comparison
      ? ""
      : model.axes.some((a) => /^batch([-_ ]size)?$/i.test(a.name))
        ? "No line was fitted: see what is not known."
        : "Lines are fitted along an axis that is named batch or batch_size, " +
          "which this matrix does not have.";
  const figures = [...new Set(fits.map((f) => model.about(f.figure).title))].join(" and ");
  return asked
    ? "Lines are fitted to the usual statistic alone."
    : view.along !== fits[0]!.axis
      ? `Lines are fitted along ${fits[0]!.axis} alone.`
      : fits.some((f) => [f.figure, memory].includes(view.figure))
        ? merged
          ? "Lines are fitted to single combinations of the other axes: " +
            "where several are drawn as one, their means are joined."
          : ""
        : `Lines are fitted to ${figures} alone.`;
}

/** The fit of just these cells; of none or more of them, nothing. */
function fitOf(model: Model, view: View, cells: Cell[]): Fit | null {
  if (model.statistic(view.figure, view.statistic) !== model.statistic(view.figure, ""))
    return null;
  const own = new Set(cells.map((c) => c.index)),
    figure = model.figureOf(cells[0]!, view.figure);
  const some = (model.comparison?.fits ?? []).filter(
    (f) => f.figure === figure && f.axis === view.along && f.points.some((p) => own.has(p.cell)),
  );
  const fit = some.length === 1 ? some[0]! : null,
    longest = fit ? Math.max(...fit.points.map((p) => p.sequence)) : 0;
  return fit?.curve &&
    cells.length <= fit.points.length &&
    fit.points.some((p) => own.has(p.cell) && p.sequence === longest)
    ? fit
    : null;
}

/**
 * A fit's curve between two places of the axis, with these as its ends. Beyond its own end it goes
 * on straight, as fits in the batch do.
 */
export function stretch(
  { x, fit, low, high }: NonNullable<Fit["curve"]>,
  from: number,
  to: number,
): { x: number; fit: number; low?: number; high?: number }[] {
  const end = x.length - 1,
    inner = x.filter((v) => v > from && v < to);
  return [from, ...inner, to].map((v) => {
    const right = Math.min(
        Math.max(
          x.findIndex((other) => other >= v),
          v > x[end]! ? end : 1,
        ),
        end,
      ),
      share = (v - x[right - 1]!) / (x[right]! - x[right - 1]! || 1);
    const at = (column: number[]) =>
      column[right - 1]! + (column[right]! - column[right - 1]!) * share;
    return {
      x: v,
      fit: at(fit),
      ...(low && high && v <= x[end]! ? { low: at(low), high: at(high) } : {}),
    };
  });
}

const sideways = (frame: Frame, x: number, to: number) => frame.left + (x / to) * frame.width;

/** The axis of numbers: the measured ones where there is room, else round ones. */
function below(frame: Frame, to: number, curves: Curve[], name: string): SVGGElement {
  const colour = theme(),
    g = s("g", { "aria-hidden": "true" }),
    y = frame.top + frame.height;
  const measured = [...new Set(curves.flatMap((c) => c.points.map((p) => p.x)))].sort(
      (a, b) => a - b,
    ),
    spread = measured.every((v, i) => i === 0 || ((v - measured[i - 1]!) / to) * frame.width > 30);
  for (const v of spread && measured[measured.length - 1]! > to / 3
    ? measured
    : ticks(to, "count", Math.max(2, frame.width / 60))) {
    const x = sideways(frame, v, to);
    g.append(
      s("line", { x1: x, x2: x, y1: y, y2: y + 4, stroke: colour("muted") }),
      s("text", { x, y: y + 17, "text-anchor": "middle", fill: colour("muted") }, tick(v, "count")),
    );
  }
  g.append(
    s(
      "text",
      {
        x: frame.left + frame.width,
        y: y + 33,
        "text-anchor": "end",
        fill: colour("muted"),
        "font-size": 11,
      },
      name,
    ),
  );
  return g;
}

/**
 * The band, the line, dashed where nothing was measured, and the limit. Without a fit, the points
 * joined.
 */
function line(c: Curve, n: number, frame: Frame, to: number, ink: string): SVGGElement {
  const g = s("g", { "pointer-events": "none" }),
    at = (x: number, v: number) =>
      `${sideways(frame, x, to).toFixed(1)} ${up(frame, v).toFixed(1)}`;
  const last = Math.max(...c.points.map((p) => p.x)),
    curve = c.fit?.curve,
    limit = c.fit?.limit;
  if (!curve || curve.x.length < 2) {
    const known = c.points.filter((p) => p.spot);
    if (known.length > 1)
      g.append(
        s("path", {
          d: `M${known.map((p) => at(p.x, p.spot!.value)).join("L")}`,
          fill: "none",
          stroke: ink,
          "stroke-width": 1.75,
          "stroke-opacity": 0.7,
        }),
      );
    return g;
  }
  const end = endOf(c, to),
    band = stretch(curve, 0, end).filter((p) => p.low !== undefined);
  if (band.length > 1) {
    const above = band.map((p) => at(p.x, p.high!)),
      below = band.toReversed().map((p) => at(p.x, p.low!));
    g.append(
      s("path", {
        d: `M${[...above, ...below].join("L")}Z`,
        fill: ink,
        "fill-opacity": 0.14,
      }),
    );
  }
  for (const [from, until, dash] of [
    [0, last, undefined],
    [last, end, "5 4"],
  ] as const)
    if (until > from)
      g.append(
        s("path", {
          d: `M${stretch(curve, from, until)
            .map((p) => at(p.x, p.fit))
            .join("L")}`,
          fill: "none",
          stroke: ink,
          "stroke-width": 2,
          "stroke-dasharray": dash,
        }),
      );
  if (limit && !limit.refuted && limit.batch > 0 && limit.batch <= to)
    g.append(...limitMark(limit, n, frame, to, ink));
  return g;
}

/** The largest batch that is foretold to fit, and between which it lies. */
function limitMark(
  limit: NonNullable<Fit["limit"]>,
  n: number,
  frame: Frame,
  to: number,
  ink: string,
): SVGElement[] {
  const x = sideways(frame, limit.batch, to),
    y = up(frame, limit.memory_bytes),
    text = `${count(limit.batch)} in ${bytes(limit.memory_bytes)}`,
    long = wide(text, 11, 600);
  return [
    s("line", {
      x1: x,
      x2: x,
      y1: y,
      y2: frame.top + frame.height,
      stroke: ink,
      "stroke-dasharray": "2 3",
    }),
    s("path", {
      d:
        `M${sideways(frame, limit.high === undefined ? limit.batch : limit.low, to)} ` +
        `${y}H${sideways(frame, Math.min(limit.high ?? limit.batch, to), to)}`,
      stroke: ink,
      "stroke-width": 2,
    }),
    s("circle", { cx: x, cy: y, r: 4, fill: theme()("panel"), stroke: ink, "stroke-width": 2 }),
    s(
      "text",
      {
        x: x - long - 10 > frame.left ? x - 8 : x + 8,
        y: y + 18 + n * 15,
        "text-anchor": x - long - 10 > frame.left ? "end" : "start",
        "font-size": 11,
        "font-weight": 600,
        fill: ink,
        "data-above": "",
        "pointer-events": "none",
        ...halo(theme()("panel")),
      },
      text,
    ),
  ];
}

function pointMark(
  model: Model,
  view: View,
  c: Curve,
  n: number,
  p: Point,
  frame: Frame,
  to: number,
  ink: string,
  marks: Map<SVGElement, Mark>,
): SVGElement {
  const x = sideways(frame, p.x, to),
    floor = frame.top + frame.height,
    failed = p.cells.find((one) => one.outcome !== "done");
  if (!p.spot) {
    const middle = Math.min(x + n * 16, frame.left + frame.width - 7),
      element = failedMark(failed ?? p.cells[0]!, middle - 7, floor - 16, 14, 14);
    marks.set(element, told(model, view, p.cells, null, middle, floor - 9));
    return element;
  }
  const y = up(frame, p.spot.value),
    element = s("g", {}, s("circle", { cx: x, cy: y, r: 10, fill: "transparent" }));
  if (p.spot.high > p.spot.low)
    element.append(whisker(x, up(frame, p.spot.low), up(frame, p.spot.high), 4, ink));
  element.append(s("circle", { cx: x, cy: y, r: 4.5, fill: ink, "data-edge": "" }));
  const mark = told(model, view, p.cells, p.spot, x, y),
    fit = c.fit,
    residual =
      fit && p.cells.length === 1
        ? fit.points.find((q) => q.cell === p.cells[0]!.index)?.residual
        : undefined;
  if (fit) {
    const lies =
      residual === undefined
        ? ""
        : `, this point lies ${quantity(Math.abs(residual), frame.unit)} ` +
          `${residual < 0 ? "below" : "above"} the line`;
    mark.lines.push(`${fit.form}: R² ${fit.r2.toFixed(4)}${lies}`);
  }
  marks.set(element, mark);
  return element;
}
