import { canvas, fitted, mix, readable, s, wide } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { quantity } from "../../lib/format";
import { outcomes, type Cell, type Model } from "../model";
import { inRow, present, split, spot, type Panel } from "../panels";
import { figureTitle, kept, type Page, type View } from "../state";
import { failedMark, titleOf, told } from "./marks";
import { axisChoices, caveats, picture, select, type Drawn, type Mark } from "./picture";

const mostPanels = 24,
  titleRoom = 24,
  headRoom = 24,
  between = 26,
  keyRoom = 44;

/** Two axes as rows and columns, the chosen figure as the depth of a colour. */
export function heat(model: Model, page: Page): HTMLElement | null {
  if (axisChoices(model).length < 2) return null;
  return picture(model, page, {
    id: "heat",
    title: "Two axes against each other",
    tools: [
      select(page, "rows", "Rows", () => axisChoices(model)),
      select(page, "columns", "Columns", () => axisChoices(model)),
      select(page, "panels", "Panels by", () => [
        ["", "what is left"],
        ["none", "nothing"],
        ...axisChoices(model),
      ]),
    ],
    follow: ["rows", "columns", "panels"],
    caption: (view) => `${figureTitle(model, view)}: ${view.rows} against ${view.columns}`,
    draw: (width, view) => draw(model, view, width),
  });
}

function draw(model: Model, view: View, width: number): Drawn | string {
  const cells = kept(model, view),
    rowAxis = model.axis(view.rows),
    columnAxis = model.axis(view.columns);
  if (cells.length === 0) return "No cell passes the filters.";
  if (rowAxis === columnAxis) return "Choose two different axes.";
  const parts = split(model, cells, [rowAxis, columnAxis], view.panels, mostPanels);
  const { panels, merged } = parts;
  const rows = present(cells, rowAxis),
    columns = present(cells, columnAxis),
    unit = model.about(view.figure).unit,
    colour = theme();
  const values = panels.flatMap((p) =>
    places(p, rows, columns, rowAxis, columnAxis).flatMap(
      (c) => spot(model, c.cells, view.figure, view.statistic)?.value ?? [],
    ),
  );
  const low = Math.min(...values),
    high = Math.max(...values),
    names = rows.map((r) => model.shown(rowAxis, r));
  const side = Math.min(width < 560 ? 130 : 220, Math.max(...names.map((n) => wide(n))) + 14);
  const field = [
    Math.max(34, Math.min(92, (width - side) / columns.length - 2)),
    rows.length > 24 ? 22 : 34,
  ] as const;
  const each = columns.length * field[0],
    across = inRow(parts, (width - side + between) / (each + between)),
    down = Math.ceil(panels.length / across);
  const row = titleRoom + headRoom + rows.length * field[1] + 16;
  const svg = canvas(
    Math.max(width, side + across * (each + between) - between),
    keyRoom + down * row,
    `${figureTitle(model, view)}: ${rows.length} by ${columns.length} fields`,
  );
  const marks = new Map<SVGElement, Mark>(),
    depth = (v: number) =>
      mix(colour("tint"), colour("accent"), high > low ? (v - low) / (high - low) : 0.5);
  if (values.length > 0) svg.append(key(depth, low, high, unit));
  panels.forEach((panel, i) => {
    const left = side + (i % across) * (each + between),
      top = keyRoom + Math.floor(i / across) * row;
    if (panel.title) svg.append(titleOf(panel.title, each, left, top + 15));
    columns.forEach((c, n) => {
      const name = model.shown(columnAxis, c);
      svg.append(head(name, field[0] - 2, left + (n + 0.5) * field[0], top + titleRoom + 15));
    });
    if (i % across === 0)
      names.forEach((name, n) =>
        svg.append(
          fitted(name, side - 10, {
            x: left - 8,
            y: top + titleRoom + headRoom + (n + 0.5) * field[1] + 4,
            "text-anchor": "end",
            fill: colour("muted"),
          }),
        ),
      );
    for (const place of places(panel, rows, columns, rowAxis, columnAxis)) {
      const x = left + place.column * field[0] + 1,
        y = top + titleRoom + headRoom + place.row * field[1] + 1,
        w = field[0] - 2,
        tall = field[1] - 2;
      const found = spot(model, place.cells, view.figure, view.statistic),
        failed = place.cells.find((c) => c.outcome !== "done");
      const element = found
        ? full(quantity(found.value, unit), depth(found.value), x, y, w, tall)
        : failedMark(place.cells[0]!, x, y, w, tall);
      if (found && failed) element.append(corner(failed, x + w - 3, y + 11));
      svg.append(element);
      marks.set(element, told(model, view, place.cells, found, x + w / 2, y + tall / 2));
    }
  });
  const note = caveats(model, view, cells, merged);
  return { svg, marks, ...(note ? { note } : {}) };
}

const head = (name: string, width: number, x: number, y: number): SVGElement =>
  fitted(name, width, { x, y, "text-anchor": "middle", fill: theme()("muted") });

/** Says of a field with a figure that a cell in it failed. */
function corner({ outcome }: Cell, x: number, y: number): SVGElement {
  const { ink, mark } = outcomes[outcome];
  return s("text", { x, y, "font-size": 10, "text-anchor": "end", fill: theme()(ink) }, mark);
}

interface Place {
  row: number;
  column: number;
  cells: Cell[];
}

function places(
  panel: Panel,
  rows: number[],
  columns: number[],
  rowAxis: number,
  columnAxis: number,
): Place[] {
  return rows.flatMap((r, row) =>
    columns.flatMap((c, column): Place[] => {
      const cells = panel.cells.filter((x) => x.at[rowAxis] === r && x.at[columnAxis] === c);
      return cells.length > 0 ? [{ row, column, cells }] : [];
    }),
  );
}

function full(
  text: string,
  ink: string,
  x: number,
  y: number,
  width: number,
  height: number,
): SVGElement {
  const size = height < 26 ? 10 : 12;
  return s(
    "g",
    {},
    s("rect", { x, y, width, height, rx: 5, fill: ink, "data-edge": "" }),
    wide(text, size) <= width - 4 &&
      s(
        "text",
        {
          x: x + width / 2,
          y: y + height / 2 + size * 0.36,
          "text-anchor": "middle",
          "font-size": size,
          fill: readable(ink, "#141c26", "#ffffff"),
        },
        text,
      ),
  );
}

/** What the depths mean. */
function key(
  depth: (v: number) => string,
  low: number,
  high: number,
  unit: Parameters<typeof quantity>[1],
): SVGGElement {
  const g = s("g", { "aria-hidden": "true" }),
    ink = theme()("muted"),
    from = quantity(low, unit),
    long = wide(from) + 8,
    steps = 40,
    width = 160;
  g.append(s("text", { x: 0, y: 14, fill: ink }, from));
  if (high > low) {
    for (let i = 0; i < steps; i++)
      g.append(
        s("rect", {
          x: long + (i * width) / steps,
          y: 4,
          width: width / steps + 0.5,
          height: 12,
          fill: depth(low + ((high - low) * (i + 0.5)) / steps),
        }),
      );
    g.append(s("text", { x: long + width + 8, y: 14, fill: ink }, quantity(high, unit)));
  }
  return g;
}
