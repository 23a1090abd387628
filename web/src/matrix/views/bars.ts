import {
  canvas,
  fitted,
  grid,
  inks,
  legend,
  s,
  up,
  whisker,
  wide,
  type Frame,
} from "../../draw/svg";
import { theme } from "../../draw/theme";
import { fromZero } from "../../lib/scales";
import { quantity } from "../../lib/format";
import { type Cell, type Model } from "../model";
import { inRow, present, split, spot, type Panel, type Spot } from "../panels";
import { figureTitle, kept, type Page, type View } from "../state";
import { axisChoices, caveats, picture, select, toggle, type Drawn, type Mark } from "./picture";
import { failedMark, failureKeys, titleOf, told } from "./marks";

const reach = "; the line on it goes from the lowest to the highest cell";
const scaleRoom = 66,
  titleRoom = 24,
  between = 22,
  mostPanels = 24;

/** Bars of the chosen figure, grouped by one axis and coloured by another; the rest in panels. */
export function bars(model: Model, page: Page): HTMLElement {
  return picture(model, page, {
    id: "bars",
    title: "Cells side by side",
    tools: [
      select(page, "group", "Group by", () => axisChoices(model, "nothing")),
      select(page, "colour", "Colour by", () => axisChoices(model, "nothing")),
      select(page, "panels", "Panels by", () => [
        ["", "what is left"],
        ["none", "nothing"],
        ...axisChoices(model),
      ]),
      toggle(page, "free", "each panel its own scale"),
    ],
    follow: ["group", "colour", "panels", "free"],
    caption: (view) =>
      `${figureTitle(model, view)} by ` +
      `${[view.group, view.colour].filter(Boolean).join(" and ") || "cell"}`,
    draw: (width, view) => draw(model, view, width),
  });
}

interface Bar {
  group: number;
  colour: number;
  cells: Cell[];
  spot: Spot | null;
}

function draw(model: Model, view: View, width: number): Drawn | string {
  const cells = kept(model, view);
  if (cells.length === 0) return "No cell passes the filters.";
  const group = model.axis(view.group),
    colourAxis = model.axis(view.colour) === group ? -1 : model.axis(view.colour);
  const parts = split(
    model,
    cells,
    [group, colourAxis].filter((a) => a >= 0),
    view.panels,
    mostPanels,
  );
  const { panels, merged } = parts;
  const groups = present(cells, group),
    colours = present(cells, colourAxis),
    all = colourAxis < 0 ? [theme()("curve-0")] : inks(model.axes[colourAxis]!.values.length);
  const found = panels.map((p) => barsOf(model, view, p, groups, colours, group, colourAxis));
  const top = (bars: Bar[]) => fromZero(0, Math.max(0, ...bars.map((b) => b.spot?.high ?? 0)))[1];
  const shared = top(found.flat());
  const layout = layoutOf(parts, view.free, width, groups.length, colours.length),
    { across, down, each, tall, own, room } = layout;
  const key = legend(
    [
      ...(colourAxis < 0
        ? []
        : colours.map((c) => ({ ink: all[c]!, text: model.shown(colourAxis, c) }))),
      ...failureKeys(cells),
    ],
    width,
  );
  const names = group < 0 ? [] : groups.map((g) => model.shown(group, g)),
    lines = names.map((n) => lined(n, each / groups.length));
  const turned = lines.some(
    (l) => l.length > 3 || l.some((part) => wide(part) > each / groups.length - 2),
  );
  const below = group < 0 ? 8 : turned ? 66 : 14 + 14 * Math.max(...lines.map((l) => l.length)),
    row = titleRoom + tall + below;
  const svg = canvas(
    Math.max(width, layout.whole),
    key.height + down * row,
    `${figureTitle(model, view)}: bars of ${cells.length} cells`,
  );
  svg.append(key.element);
  const marks = new Map<SVGElement, Mark>();
  panels.forEach((panel, i) => {
    const at = i % across,
      y = key.height + Math.floor(i / across) * row;
    const left = room + at * (each + between + own) + own;
    const frame: Frame = {
      left,
      top: y + titleRoom,
      width: each,
      height: tall,
      top_value: view.free ? top(found[i]!) : shared,
      unit: model.about(view.figure).unit,
    };
    if (panel.title) svg.append(titleOf(panel.title, each, left, y + 15));
    svg.append(grid(frame, view.free || at === 0), labels(names, frame, turned));
    for (const bar of found[i]!)
      svg.append(drawBar(model, view, bar, frame, groups, colours, all, marks));
  });
  const note = caveats(model, view, cells, merged, reach);
  return { svg, marks, ...(note ? { note } : {}) };
}

/** How the panels lie: so many in a row, so wide and tall, with a scale each or one for all. */
function layoutOf(
  parts: ReturnType<typeof split>,
  free: boolean,
  width: number,
  groups: number,
  colours: number,
) {
  const { panels } = parts,
    own = free ? scaleRoom : 0,
    room = free ? 0 : scaleRoom;
  const least = Math.max(
    panels.length > 1 ? 215 : 130,
    groups * (colours * 9 + 8),
    ...(panels.length > 1 ? [] : [width - scaleRoom]),
  );
  const across = inRow(parts, (width - room + between) / (least + between + own)),
    down = Math.ceil(panels.length / across),
    each = Math.max(least, (width - room - (across - 1) * between) / across - own);
  return {
    across,
    down,
    each,
    own,
    room,
    tall: panels.length === 1 ? 300 : down > 2 ? 150 : 200,
    whole: room + across * (each + own) + (across - 1) * between,
  };
}

function barsOf(
  model: Model,
  view: View,
  panel: Panel,
  groups: number[],
  colours: number[],
  group: number,
  colourAxis: number,
): Bar[] {
  return groups.flatMap((g) =>
    colours.flatMap((c): Bar[] => {
      const cells = panel.cells.filter(
        (x) => (group < 0 || x.at[group] === g) && (colourAxis < 0 || x.at[colourAxis] === c),
      );
      return cells.length > 0
        ? [{ group: g, colour: c, cells, spot: spot(model, cells, view.figure, view.statistic) }]
        : [];
    }),
  );
}

/** The groups' names below the axis: in lines where their words fit, else turned. */
function labels(names: string[], frame: Frame, turned: boolean): SVGGElement {
  const colour = theme(),
    g = s("g", { "aria-hidden": "true" }),
    step = frame.width / names.length,
    every = turned ? Math.ceil(14 / step) : 1; // turned texts need their height
  names.forEach((name, i) => {
    if (i % every !== 0) return;
    const x = frame.left + (i + 0.5) * step,
      y = frame.top + frame.height + 16;
    if (turned)
      g.append(
        fitted(name, 74, {
          x: x + 4,
          y,
          transform: `rotate(-38 ${x + 4} ${y})`,
          "text-anchor": "end",
          fill: colour("muted"),
        }),
      );
    else
      lined(name, step).forEach((part, n) =>
        g.append(
          s("text", { x, y: y + n * 14, "text-anchor": "middle", fill: colour("muted") }, part),
        ),
      );
  });
  return g;
}

/** A name in lines no wider than some pixels, where its words allow it. */
function lined(name: string, width: number): string[] {
  return name.split(" ").reduce<string[]>((rows, word) => {
    const last = rows[rows.length - 1];
    if (last !== undefined && wide(`${last} ${word}`) <= width - 4)
      rows[rows.length - 1] = `${last} ${word}`;
    else rows.push(word);
    return rows;
  }, []);
}

function drawBar(
  model: Model,
  view: View,
  bar: Bar,
  frame: Frame,
  groups: number[],
  colours: number[],
  all: string[],
  marks: Map<SVGElement, Mark>,
): SVGElement {
  const colour = theme(),
    step = frame.width / groups.length,
    gap = Math.min(14, step * 0.22),
    slot = Math.min(72, (step - gap) / colours.length);
  const x =
    frame.left +
    groups.indexOf(bar.group) * step +
    (step - slot * colours.length) / 2 +
    colours.indexOf(bar.colour) * slot +
    0.5;
  const width = Math.max(1, slot - Math.min(2, slot * 0.15)),
    middle = x + width / 2,
    floor = frame.top + frame.height;
  const ink = all[colours.length > 1 || all.length > 1 ? bar.colour : 0] ?? colour("curve-0");
  if (!bar.spot) {
    const element = failedMark(bar.cells[0]!, x, floor - 26, width, 26);
    marks.set(element, told(model, view, bar.cells, bar.spot, middle, floor - 12));
    return element;
  }
  const { value, low, high } = bar.spot,
    y = up(frame, value);
  const element = s(
    "g",
    {},
    s("rect", { x, y: frame.top, width, height: frame.height, fill: "transparent" }), // easy to hit
    s("rect", {
      x,
      y,
      width,
      height: Math.max(1, floor - y),
      rx: Math.min(3, width / 4),
      fill: ink,
      "data-edge": "",
    }),
  );
  if (width >= 16 && bar.cells.length === 1)
    element.append(...repeats(bar.spot, frame, middle, width));
  if (high > low)
    element.append(
      whisker(middle, up(frame, low), up(frame, high), Math.min(5, width / 3), colour("text")),
    );
  if (
    width >= 30 &&
    wide(quantity(value, frame.unit), 11) + 4 <= (colours.length > 1 ? slot : step)
  )
    element.append(above(middle, up(frame, high) - 6, colour("text"), quantity(value, frame.unit)));
  if (bar.cells.some((c) => c.outcome !== "done"))
    element.append(above(middle, floor - 5, colour("panel"), "!"));
  marks.set(element, told(model, view, bar.cells, bar.spot, middle, (y + floor) / 2));
  return element;
}

/** The single repeats, where they lie apart. */
function repeats({ each }: Spot, frame: Frame, middle: number, width: number): SVGElement[] {
  const spread = up(frame, Math.min(...each)) - up(frame, Math.max(...each)),
    apart = Math.min(8, width / (each.length + 1));
  if (spread <= 5) return [];
  return each.map((v, i) =>
    s("circle", {
      cx: middle + (i - (each.length - 1) / 2) * apart,
      cy: up(frame, v),
      r: 2,
      fill: theme()("text"),
      "fill-opacity": 0.6,
    }),
  );
}

const above = (x: number, y: number, fill: string, text: string): SVGElement =>
  s("text", { x, y, "text-anchor": "middle", "font-size": 11, fill }, text);
