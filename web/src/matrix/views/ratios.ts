import { canvas, fitted, halo, s, wide } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { count, quantity } from "../../lib/format";
import { liveTable } from "../../views/tables";
import { h } from "../../views/dom";
import type { Pair, Ratio, Verdict } from "../compared";
import { memory, type Cell, type Model } from "../model";
import { filtered, kept, type Page, type View } from "../state";
import { picture, type Drawn, type Mark } from "./picture";

/** A ratio for people: × 1.25. */
export const times = (ratio: number): string =>
  `× ${ratio.toFixed(ratio >= 99.5 ? 0 : ratio >= 9.95 ? 1 : ratio < 0.095 ? 3 : 2)}`;

const verdicts: Record<Verdict, { title: string; ink: string }> = {
  more: { title: "more", ink: "curve-1" },
  less: { title: "less", ink: "curve-2" },
  same: { title: "the same", ink: "info" },
  unknown: { title: "not decided", ink: "muted" },
};

/** How two values of an axis compare, with everything else equal. */
export function ratios(model: Model, page: Page): HTMLElement | null {
  const all = model.comparison?.ratios ?? [];
  if (all.length === 0) return null;
  const whole = picture(model, page, {
    id: "ratios",
    title: "How much more",
    tools: [],
    follow: [],
    caption: (view) => `Ratios of ${model.about(view.figure).title}`,
    draw: (width, view) => draw(model, view, all, width),
  });
  whole.append(table(model, page, all), pairs(model, page, all));
  return whole;
}

/** The ratios that the chosen figure has part in. */
function of(model: Model, view: View, all: Ratio[]): Ratio[] {
  const comparison = model.comparison!;
  return all.filter((r) =>
    view.figure === memory
      ? [comparison.figure, comparison.device_figure].includes(r.figure)
      : r.figure === view.figure || r.base_figure === view.figure,
  );
}

const cellOf = (model: Model, pair: Pair): Cell => model.cells[pair.cell]!;

function draw(model: Model, view: View, all: Ratio[], width: number): Drawn | string {
  const some = of(model, view, all),
    colour = theme();
  if (some.length === 0)
    return (
      `No ratio of ${model.about(view.figure).title} is known: ` +
      `${all.length > 0 ? "choose another figure" : "nothing was compared"}.`
    );
  const allowed = new Set(kept(model, view).map((c) => c.index)),
    narrow = width < 560,
    tall = narrow ? 46 : 32;
  const pairsOf = (r: Ratio) => r.of.filter((p) => allowed.has(p.cell) && allowed.has(p.base));
  const ends = [
    1,
    ...some.flatMap((r) => [
      r.interval?.low ?? r.ratio,
      r.interval?.high ?? r.ratio,
      ...pairsOf(r).map((p) => p.ratio),
    ]),
  ].filter((v) => v > 0);
  const low = Math.min(...ends) / 1.08,
    high = Math.max(...ends) * 1.08;
  const names = some.map((r) => nameOf(model, r, some));
  const side = narrow
      ? 0
      : Math.min(width * 0.34, Math.max(...names.map((n) => wide(n, 12, 600))) + 16),
    figures = 84,
    plot = width - side - figures;
  const x = (v: number) => side + (Math.log(v / low) / Math.log(high / low)) * plot;
  const svg = canvas(width, some.length * tall + 34, `Ratios: ${names.join(", ")}`),
    marks = new Map<SVGElement, Mark>();
  const foot = some.length * tall + 4;
  for (const v of logTicks(low, high, plot / 50)) svg.append(...gridLine(v, x(v), foot));
  some.forEach((r, i) => {
    const y = i * tall + (narrow ? 31 : tall / 2),
      ink = colour(verdicts[r.verdict].ink);
    svg.append(
      fitted(names[i]!, narrow ? width : side - 12, {
        x: 0,
        y: narrow ? i * tall + 15 : y + 4,
        "font-weight": 600,
        fill: colour("text"),
        ...halo(colour("panel")),
      }),
      s(
        "text",
        {
          x: width,
          y: y + 4,
          "text-anchor": "end",
          "font-weight": 650,
          fill: r.verdict === "unknown" ? colour("muted") : ink,
        },
        times(r.ratio),
      ),
    );
    for (const p of pairsOf(r)) {
      const dot = s("circle", {
        cx: x(p.ratio),
        cy: y,
        r: 4,
        fill: colour(verdicts[p.verdict].ink),
        "fill-opacity": 0.35,
        "data-edge": "",
      });
      svg.append(dot);
      marks.set(dot, pairMark(model, r, p, x(p.ratio), y));
    }
    svg.append(...middle(r, x, y, ink));
  });
  return { svg, marks, ...(filtered(model, view) ? { note: whole } : {}) };
}

const whole =
  "Means and intervals are of the whole matrix; " +
  "the small points are the pairs that pass the filters.";

/** Its title, with its figure where another has the same. */
const nameOf = (model: Model, r: Ratio, all: Ratio[]): string =>
  all.some((o) => o !== r && o.title === r.title)
    ? `${r.title} (${model.about(r.figure).title})`
    : r.title;

/** A ratio of the scale. */
function gridLine(v: number, at: number, foot: number): SVGElement[] {
  const colour = theme();
  return [
    s("line", {
      x1: at,
      x2: at,
      y1: 2,
      y2: foot,
      stroke: colour(v === 1 ? "muted" : "grid"),
      "stroke-width": v === 1 ? 1.5 : 1,
    }),
    s(
      "text",
      {
        x: at,
        y: foot + 16,
        "text-anchor": "middle",
        fill: colour(v === 1 ? "text" : "muted"),
      },
      `× ${v}`,
    ),
  ];
}

/** What is told of one pair of cells. */
const pairMark = (model: Model, r: Ratio, p: Pair, x: number, y: number): Mark => ({
  title: model.title(cellOf(model, p)),
  lines: [
    `${r.title}: ${times(p.ratio)}`,
    p.interval
      ? `95 % interval ${times(p.interval.low)} to ${times(p.interval.high)}`
      : "no interval: one trial",
    verdicts[p.verdict].title,
  ],
  cells: [cellOf(model, p)],
  x,
  y,
});

/** The ratio itself, with its interval. */
function middle(r: Ratio, x: (v: number) => number, y: number, ink: string): SVGElement[] {
  const interval =
    r.interval &&
    s("path", {
      d:
        `M${x(r.interval.low)} ${y}H${x(r.interval.high)}M${x(r.interval.low)} ` +
        `${y - 5}v10M${x(r.interval.high)} ${y - 5}v10`,
      stroke: ink,
      "stroke-width": 2.5,
      "pointer-events": "none",
    });
  const point = s("rect", {
    x: x(r.ratio) - 5.5,
    y: y - 5.5,
    width: 11,
    height: 11,
    rx: 2.5,
    transform: `rotate(45 ${x(r.ratio)} ${y})`,
    fill: ink,
    stroke: theme()("panel"),
    "stroke-width": 1.5,
    "pointer-events": "none",
  });
  return interval ? [interval, point] : [point];
}

/** Round ratios between two, 1 among them, no closer than one of so many equal parts. */
export function logTicks(low: number, high: number, parts: number): number[] {
  const least = Math.log(high / low) / parts;
  for (const steps of [
    [1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4, 5, 7],
    [1, 1.2, 1.5, 2, 3, 5, 7],
    [1, 1.5, 2, 3, 5],
    [1, 2, 5],
    [1, 3],
    [1],
  ]) {
    const found = Array.from({ length: 17 }, (_, i) => i - 8)
      .flatMap((d) => steps.map((v) => Number((v * 10 ** d).toPrecision(3))))
      .filter((v) => v >= low && v <= high);
    if (found.every((v, i) => i === 0 || Math.log(v / found[i - 1]!) >= least)) return found;
  }
  return [1];
}

/** The same in figures, and how many pairs it rests on. */
function table(model: Model, page: Page, all: Ratio[]): HTMLElement {
  const rows = (view: View) =>
    of(model, view, all).map((r) => [
      r.title,
      r.figure === r.base_figure
        ? model.about(r.figure).title
        : `${model.about(r.figure).title} / ${model.about(r.base_figure).title}`,
      times(r.ratio),
      r.interval ? `${times(r.interval.low)} to ${times(r.interval.high)}` : null,
      verdicts[r.verdict].title,
      count(r.pairs),
      [
        r.more && `${count(r.more)} more`,
        r.less && `${count(r.less)} less`,
        r.same && `${count(r.same)} the same`,
        r.pairs - r.more - r.less - r.same > 0 &&
          `${count(r.pairs - r.more - r.less - r.same)} not decided`,
      ]
        .filter(Boolean)
        .join(", "),
      r.left || null,
    ]);
  const live = liveTable({
    name: "ratios",
    title: "Ratios",
    rows: rows(page.get()),
    columns: [
      { name: "title", title: "ratio" },
      { name: "figure", title: "figure" },
      { name: "ratio", title: "mean" },
      { name: "interval", title: "95 % interval" },
      { name: "verdict", title: "verdict" },
      { name: "pairs", title: "pairs" },
      { name: "each", title: "of the pairs" },
      { name: "left", title: "left out", unit: "count" },
    ],
  });
  const words = h("ul", { class: "notes" });
  page.follow(["figure"], (view) => {
    live.show(rows(view));
    words.replaceChildren(...of(model, view, all).map((r) => h("li", {}, r.sentence)));
  });
  return h(
    "div",
    {},
    live.element,
    h("details", { class: "calls" }, h("summary", {}, "In words"), words),
  );
}

/** Every pair that passes the filters. */
function pairs(model: Model, page: Page, all: Ratio[]): HTMLElement {
  const figure = (c: Cell | undefined, f: string) =>
    c ? quantity(model.value(c, f, "")?.value ?? null, model.about(f).unit) : "–";
  const rows = (view: View) => {
    const allowed = new Set(kept(model, view).map((c) => c.index));
    return of(model, view, all).flatMap((r) =>
      r.of
        .filter((p) => allowed.has(p.cell) && allowed.has(p.base))
        .map((p) => [
          cellOf(model, p).key,
          model.title(cellOf(model, p)),
          r.title,
          figure(cellOf(model, p), r.figure),
          figure(model.cells[p.base], r.base_figure),
          times(p.ratio),
          p.interval ? `${times(p.interval.low)} to ${times(p.interval.high)}` : null,
          verdicts[p.verdict].title,
        ]),
    );
  };
  const live = liveTable(
    {
      name: "pairs",
      title: "Pairs of cells",
      rows: rows(page.get()),
      columns: [
        { name: "key", title: "" },
        { name: "cell", title: "cell" },
        { name: "ratio", title: "compared" },
        { name: "value", title: "it needs" },
        { name: "base", title: "the other" },
        { name: "times", title: "ratio" },
        { name: "interval", title: "95 % interval" },
        { name: "verdict", title: "verdict" },
      ],
    },
    {
      pick: (r) => page.set({ cell: String(r[0]) }),
      stands: (r) => (page.get().cell === r[0] ? "picked" : ""),
    },
  );
  const title = h("summary", {}, "");
  const whole = h("details", { class: "calls pairs" }, title, live.element);
  page.follow(["figure", "only", "state"], (view) => {
    const now = rows(view);
    whole.hidden = now.length === 0;
    title.textContent =
      `${count(now.length)} pairs of ` +
      `cells${filtered(model, view) ? " that pass the filters" : ""}`;
    live.show(now);
  });
  page.follow(["cell"], () => live.refresh());
  return whole;
}
