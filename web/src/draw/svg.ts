// Pictures as SVG, in colours as they are (no style sheet), so that what is saved looks like what
// is seen.

import { tick } from "../lib/format";
import { ticks } from "../lib/scales";
import type { Unit } from "../api";
import { theme } from "./theme";

const space = "http://www.w3.org/2000/svg";
const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export type Attributes = Record<string, string | number | undefined>;

/** An element of a picture. Texts are texts. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string | null | false)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined)
      element.setAttribute(
        name,
        typeof value === "number" ? String(Math.round(value * 100) / 100) : value,
      );
  for (const child of children) if (child) element.append(child);
  return element;
}

/** An empty picture of so many pixels. */
export const canvas = (width: number, height: number, label: string): SVGSVGElement =>
  s("svg", {
    xmlns: space,
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": font,
    "font-size": 12,
    role: "group",
    "aria-label": label,
  });

let measurer: CanvasRenderingContext2D | null = null;

/** How wide a text of the picture's font is. */
export function wide(text: string, size = 12, weight = 400): number {
  measurer ??= document.createElement("canvas").getContext("2d");
  if (!measurer) return text.length * size * 0.55;
  measurer.font = `${weight} ${size}px ${font}`;
  return measurer.measureText(text).width;
}

/** A text cut to a width, with what was cut in its title. */
export function fitted(text: string, width: number, attributes: Attributes): SVGTextElement {
  const size = Number(attributes["font-size"] ?? 12),
    weight = Number(attributes["font-weight"] ?? 400);
  let shown = text;
  while (shown.length > 1 && wide(shown + "…", size, weight) > width) shown = shown.slice(0, -1);
  const whole = wide(text, size, weight) <= width;
  return s(
    "text",
    attributes,
    whole ? text : `${shown.trimEnd()}…`,
    !whole && s("title", {}, text),
  );
}

function withoutMiddle(text: string, kept: number): string {
  const head = text.slice(0, Math.floor(kept / 2)),
    tail = text.slice(text.length - Math.ceil(kept / 2));
  return `${head.trimEnd()}…${tail.trimStart()}`;
}

/** A text cut in its middle, where the ends tell it from others, with the whole in its title. */
export function fittedInside(text: string, width: number, attributes: Attributes): SVGTextElement {
  const size = Number(attributes["font-size"] ?? 12),
    weight = Number(attributes["font-weight"] ?? 400);
  let shown = text;
  for (let kept = text.length - 1; kept > 2 && wide(shown, size, weight) > width; kept--)
    shown = withoutMiddle(text, kept);
  return s("text", attributes, shown, shown !== text && s("title", {}, text));
}

/**
 * What keeps a text readable on lines that it lies across: an edge in the colour of what is behind
 * it.
 */
export const halo = (behind: string): Attributes => ({
  "paint-order": "stroke",
  stroke: behind,
  "stroke-width": 3.5,
  "stroke-linejoin": "round",
});

/** Two colours (#rrggbb) mixed: 0 is the first, 1 the second. */
export function mix(a: string, b: string, share: number): string {
  const part = (c: string, i: number) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `#${[0, 1, 2]
    .map((i) =>
      Math.round(part(a, i) + (part(b, i) - part(a, i)) * share)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** The one of two text colours that is read better on a colour. */
export function readable(on: string, dark: string, light: string, border = 0.195): string {
  const channel = (i: number) => {
    const v = parseInt(on.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  };
  // at 0.195 near black and white have the same contrast
  return 0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2) > border ? dark : light;
}

/**
 * Colours for the values of something: apart while they are few, a course through the same colours
 * where they are many.
 */
export function inks(n: number): string[] {
  const colour = theme(),
    base = Array.from({ length: 7 }, (_, i) => colour(`curve-${i}`));
  if (n <= base.length) return base.slice(0, n);
  const way = [0, 5, 2, 4, 1, 6, 3].map((i) => base[i]!);
  return Array.from({ length: n }, (_, i) => {
    const at = (i / (n - 1)) * (way.length - 1),
      from = Math.min(Math.floor(at), way.length - 2);
    return mix(way[from]!, way[from + 1]!, at - from);
  });
}

/** Where a plot lies in a picture, and its scale from zero. */
export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  top_value: number;
  unit: Unit;
}

/** The height of a value in a frame. */
export const up = (f: Frame, value: number): number =>
  f.top + f.height - Math.min(Math.max(value / f.top_value, 0), 1) * f.height;

/** Lines across a frame, with their values to the left where asked. */
export function grid(f: Frame, labels: boolean): SVGGElement {
  const colour = theme(),
    g = s("g", { "aria-hidden": "true" });
  for (const v of ticks(f.top_value, f.unit, Math.max(2, Math.floor(f.height / 36)))) {
    const y = up(f, v);
    g.append(
      s("line", {
        x1: f.left,
        x2: f.left + f.width,
        y1: y,
        y2: y,
        stroke: colour(v === 0 ? "muted" : "grid"),
        "stroke-width": 1,
      }),
    );
    if (labels)
      g.append(
        s(
          "text",
          { x: f.left - 8, y: y + 4, "text-anchor": "end", fill: colour("muted") },
          tick(v, f.unit),
        ),
      );
  }
  return g;
}

/** What colours mean, in rows of at most a width; gives its height too. */
export function legend(
  entries: { ink: string; text: string; mark?: string; dash?: boolean }[],
  width: number,
): { element: SVGGElement; height: number } {
  const colour = theme(),
    g = s("g", { "aria-hidden": "true" });
  let x = 0,
    y = 0;
  for (const { ink, text, mark, dash } of entries) {
    const long = 20 + Math.min(wide(text), width - 24);
    if (x > 0 && x + long > width) {
      x = 0;
      y += 20;
    }
    g.append(
      mark
        ? s(
            "text",
            { x: x + 6, y: y + 12, fill: ink, "text-anchor": "middle", "font-weight": 700 },
            mark,
          )
        : dash
          ? s("line", {
              x1: x,
              x2: x + 14,
              y1: y + 8,
              y2: y + 8,
              stroke: ink,
              "stroke-width": 2,
              "stroke-dasharray": "4 3",
            })
          : s("rect", { x, y: y + 2, width: 12, height: 12, rx: 3, fill: ink }),
      fitted(text, width - 24, { x: x + 18, y: y + 12, fill: colour("text") }),
    );
    x += long + 18;
  }
  return { element: g, height: entries.length > 0 ? y + 26 : 0 };
}

/** A line from low to high with ends: how sure a value is. */
export function whisker(
  x: number,
  low: number,
  high: number,
  reach: number,
  ink: string,
): SVGElement {
  return s("path", {
    d:
      `M${x.toFixed(1)} ${low.toFixed(1)}V${high.toFixed(1)}M${(x - reach).toFixed(1)} ` +
      `${low.toFixed(1)}h${2 * reach}M${(x - reach).toFixed(1)} ${high.toFixed(1)}h${2 * reach}`,
    stroke: ink,
    "stroke-width": 1.4,
    fill: "none",
    "pointer-events": "none",
  });
}
