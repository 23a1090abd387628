// From one peak to the other, step by step: each bar begins where the one above it ended.

import type { Report } from "../../api";
import { canvas, fitted, s, wide } from "../../draw/svg";
import { theme } from "../../draw/theme";
import { largest, ofTable, shortened, type Difference } from "../../lib/difference";
import { byteTick, bytes } from "../../lib/format";
import { ticks } from "../../lib/scales";
import { toggle } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { section } from "../dom";
import { savedPicture } from "../saved";

const most = 14,
  row = 26;

/** The waterfall of a report of a difference. */
export function waterfall(report: Report, page: PageStore): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "diff"),
    d = table && ofTable(table);
  return d && d.parts.some((p) => p.before !== p.after)
    ? section(
        "waterfall",
        "From one peak to the other",
        waterfallPicture(
          () => d,
          () => report.run.name ?? "",
          page,
        ),
      )
    : null;
}

/**
 * What of the selection a part is, by what the difference is made by: a part of the host is none.
 */
const fieldOf = (by: string) =>
  by === "site" || by === "line"
    ? ("line" as const)
    : by === "module" || by === "category"
      ? by
      : null;

/** The bars select what their part is, as the rows of the table beside them. */
export function waterfallPicture(
  of: () => Difference | null,
  name: () => string,
  page: PageStore,
): HTMLElement {
  const picture = savedPicture(
    () => `waterfall-${name()}`,
    () => `${name()}: what the difference of the peaks is made of`,
    (width) => {
      const d = of();
      if (!d) return null;
      const field = fieldOf(d.by),
        alone = field ? page.get()[field] : "",
        svg = drawn(d, width, alone);
      if (field)
        for (const bar of svg.querySelectorAll<SVGElement>("[data-part]"))
          bar.addEventListener("click", () => toggle(page, { [field]: bar.dataset.part }));
      return svg;
    },
  );
  page.follow(["line", "module", "category"], picture.redraw);
  return picture.element;
}

function drawn(d: Difference, width: number, alone: string): SVGSVGElement {
  const colour = theme(),
    parts = largest(d, most),
    short = shortened(parts.map((p) => p.name)),
    narrow = width < 560;
  const levels = [d.before, d.after];
  for (let at = d.before, i = 0; i < parts.length; i++) {
    at += parts[i]!.after - parts[i]!.before;
    levels.push(at);
  }
  const top = Math.max(...levels); // the scale begins at 0: a bar is as long as what it stands for
  const names = narrow
      ? 0
      : Math.min(width * 0.34, Math.max(90, ...parts.map((p) => wide(short.get(p.name)!) + 22))),
    figure = 92,
    plot = Math.max(80, width - names - figure),
    step = narrow ? row + 18 : row;
  const x = (v: number) => names + (v / (top || 1)) * plot,
    tall = (parts.length + 2) * step + 24;
  const svg = canvas(
    width,
    tall,
    `From ${bytes(d.before)} to ${bytes(d.after)}: ` +
      `${parts.map((p) => `${p.name} ${signed(p.after - p.before)}`).join(", ")}`,
  );
  svg.append(...grid(x, ticks(top, "bytes", Math.max(2, plot / 110)), tall));
  const plan: Plan = { width, names, narrow, step, x, short, alone };
  const bar = (i: number, of: Bar) => svg.append(...barOf(plan, i, of));
  const ends = { from: 0, bold: true };
  bar(0, {
    ...ends,
    title: "before",
    to: d.before,
    ink: colour("curve-7"),
    text: bytes(d.before),
  });
  let at = d.before;
  parts.forEach((p, i) => {
    const delta = p.after - p.before;
    svg.append(
      s("line", {
        x1: x(at),
        x2: x(at),
        y1: (i + 1) * step - 4,
        y2: (i + 1) * step + (narrow ? 24 : 6),
        stroke: colour("muted"),
        "stroke-dasharray": "2 2",
      }),
    );
    bar(i + 1, {
      title: p.name,
      from: at,
      to: at + delta,
      ink: colour(delta > 0 ? "curve-1" : "curve-2"),
      text: signed(delta),
      part: p.name,
    });
    at += delta;
  });
  bar(parts.length + 1, {
    ...ends,
    title: "after",
    to: d.after,
    ink: colour("curve-0"),
    text: bytes(d.after),
  });
  return svg;
}

/** Where the bars lie: names to their left, or above them where it is narrow. */
interface Plan {
  width: number;
  names: number;
  narrow: boolean;
  step: number;
  x(v: number): number;
  short: Map<string, string>;
  alone: string; // the one part that is selected, "" for none
}

interface Bar {
  title: string;
  from: number;
  to: number;
  ink: string;
  text: string;
  bold?: boolean;
  part?: string;
}

function grid(x: (v: number) => number, at: number[], tall: number): SVGElement[] {
  const colour = theme();
  return at.flatMap((t) => [
    s("line", { x1: x(t), x2: x(t), y1: 0, y2: tall - 20, stroke: colour("grid") }),
    s(
      "text",
      {
        x: x(t),
        y: tall - 5,
        fill: colour("muted"),
        "font-size": 11,
        "text-anchor": t === 0 ? "start" : "middle",
      },
      byteTick(t),
    ),
  ]);
}

/** The name of the i-th bar, the bar, and its figure. */
function barOf(
  { width, names, narrow, step, x, short, alone }: Plan,
  i: number,
  { title, from, to, ink, text, bold = false, part = "" }: Bar,
): SVGElement[] {
  const colour = theme(),
    y = i * step,
    left = x(Math.min(from, to)),
    long = Math.max(Math.abs(x(to) - x(from)), 1.5),
    at = narrow ? y + 18 : y;
  const label = fitted(short.get(title) ?? title, narrow ? width - 6 : names - 12, {
    x: narrow ? 0 : names - 8,
    y: y + (narrow ? 13 : 17),
    "text-anchor": narrow ? "start" : "end",
    fill: colour("text"),
    "font-weight": bold ? 680 : 400,
  });
  if (label.textContent !== title) label.replaceChildren(label.firstChild!, s("title", {}, title));
  return [
    label,
    s(
      "rect",
      {
        x: left,
        y: at + 4,
        width: long,
        height: row - 8,
        rx: 3,
        fill: ink,
        ...(alone && part && part !== alone ? { "fill-opacity": 0.25 } : {}),
        ...(part ? { "data-part": part, cursor: "pointer" } : {}),
      },
      s("title", {}, `${title}: ${text}`),
    ),
    s(
      "text",
      {
        x: Math.max(left + long, x(0)) + 7,
        y: at + 17,
        fill: colour(bold ? "text" : "muted"),
        "font-weight": bold ? 680 : 500,
      },
      text,
    ),
  ];
}

const signed = (n: number) => `${n < 0 ? "−" : "+"}${bytes(Math.abs(n))}`;
