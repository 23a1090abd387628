// Beside the picture of blocks: how many bytes at its left, which events below.

import { between } from "../../../lib/scales";
import { bytesOf, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import type { Range } from "./tile";

const rowPx = 64,
  columnPx = 110;

/** Where the lines of the axes lie in a window. */
export const rows = (bytes: Range, height: number): number[] =>
  between(bytes, "bytes", Math.max(2, height / rowPx));
export const columns = (events: Range, width: number): number[] =>
  between(events, "count", Math.max(2, width / columnPx)).filter(Number.isInteger);

export interface Axes {
  element: HTMLElement;
  look(events: Range, bytes: Range): void;
}

/** Puts axes around a canvas, with what lies over it. */
export function axes(canvas: HTMLCanvasElement, ...over: HTMLElement[]): Axes {
  const left = h("div", { class: "axis-bytes", "aria-hidden": "true" }),
    below = h("div", { class: "axis-events", "aria-hidden": "true" });
  let last: [Range, Range] | null = null;
  const draw = () => {
    if (!last || !canvas.clientWidth) return;
    const [[from, to], [low, high]] = last,
      tall = rows([low, high], canvas.clientHeight),
      step = (tall[1] ?? high) - (tall[0] ?? low);
    const share = (e: number) => ((e - from) / (to - from)) * 100;
    left.replaceChildren(
      ...tall.map((b) =>
        h(
          "span",
          { style: `top:${((1 - (b - low) / (high - low)) * 100).toFixed(2)}%` },
          bytesOf(b, high, step),
        ),
      ),
    );
    below.replaceChildren(
      ...columns([from, to], canvas.clientWidth).map((e) =>
        h(
          "span",
          {
            style:
              `left:${share(e).toFixed(2)}%` +
              (share(e) > 96 ? ";transform:translateX(-100%)" : ""),
          },
          count(e),
        ),
      ),
    );
  };
  new ResizeObserver(draw).observe(canvas);
  return {
    element: h(
      "div",
      { class: "with-axes" },
      left,
      h("div", { class: "stacked" }, canvas, ...over),
      h("div", { class: "axis-corner", "aria-hidden": "true" }, "event"),
      below,
    ),
    look: (events, bytes) => {
      last = [events, bytes];
      draw();
    },
  };
}
