// What a panel shows as a file: the button of a table, and a picture that is drawn again when its
// width or the colours change, with buttons that save it as SVG or PNG.

import type { Cell, Table } from "../api";
import { alone, fileName, saveCSV, savePNG, saveSVG } from "../draw/save";
import { onceShown, whileShown } from "../draw/shown";
import { csv } from "../lib/csv";
import { h } from "./dom";

export interface Saved {
  element: HTMLElement;
  redraw(): void;
}

/**
 * caption is what stands above the picture in its file. draw is asked for a width in pixels; null:
 * there is nothing yet.
 */
export function savedPicture(
  name: () => string,
  caption: () => string,
  draw: (width: number) => SVGSVGElement | null,
): Saved {
  const box = h("div", { class: "picture" });
  let svg: SVGSVGElement | null = null,
    width = 0;
  const buttons = (["SVG", "PNG"] as const).map((kind) => {
    const button = h(
      "button",
      { type: "button", class: "plain", title: `Save this picture as ${kind}` },
      kind,
    );
    button.addEventListener("click", () => {
      if (!svg) return;
      const text = alone(svg, caption(), []);
      if (kind === "SVG") saveSVG(text, fileName(name()));
      else void savePNG(text, fileName(name()));
    });
    return button;
  });
  const tools = h("span", { class: "saves" }, ...buttons),
    element = h("div", { class: "saved" }, tools, h("div", { class: "sideways" }, box));
  const redraw = () => {
    width = box.clientWidth;
    if (width === 0) return;
    svg = draw(Math.max(width, 300));
    tools.hidden = svg === null;
    box.replaceChildren(...(svg ? [svg] : []));
  };
  whileShown(element, "hightide:theme", redraw);
  onceShown(element, redraw); // nothing below it moves
  new ResizeObserver(() => {
    if (box.clientWidth !== width) redraw();
  }).observe(box);
  return { element, redraw };
}

/**
 * The button that saves a table: all of its rows in the order that is shown, figures in their
 * units.
 */
export function savedTable(t: Pick<Table, "title" | "columns">, rows: () => Cell[][]): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "plain", title: "Save this table as CSV" },
    "CSV",
  );
  button.addEventListener("click", () => saveCSV(csv(t.columns, rows()), fileName(t.title)));
  return h("span", { class: "saves" }, button);
}
