// The keyboard on the picture: from block to block of those that are there at the moment, as the
// pointer goes over them.

import type { SiteLabel } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { life } from "./facts";
import { offsetAt, type Range, type Shape } from "./tile";

export interface Placed {
  shape: Shape;
  offset: number;
}

/** The shapes that are there at a point and in view, from the foot upwards. */
export const stackAt = (all: Shape[], point: number, [low, high]: Range): Placed[] =>
  all
    .flatMap((shape): Placed[] => {
      const offset = offsetAt(shape, point);
      return offset !== null && offset + shape.bytes > low && offset < high
        ? [{ shape, offset }]
        : [];
    })
    .sort((a, b) => a.offset - b.offset);

/**
 * The place in a stack after so many steps from a block, or from where it lay; from nothing the
 * first step is to the foot or to the top. -1: the stack is empty.
 */
export function stepped(stack: Placed[], from: Placed | null, by: number): number {
  const last = stack.length - 1,
    at = from === null ? -1 : stack.findIndex((p) => p.shape.n === from.shape.n),
    above = from === null ? -1 : stack.findIndex((p) => p.offset >= from.offset);
  const beside = above < 0 ? last + 1 : above; // where it would lie among those that are there now
  const to =
    at >= 0
      ? at + by
      : from !== null
        ? by > 0
          ? beside + by - 1
          : beside + by
        : Number.isFinite(by)
          ? by > 0
            ? 0
            : last
          : by;
  return Math.min(Math.max(to, 0), last);
}

export interface Walks {
  all(): Shape[];
  at(): number;
  bytes(): Range;
  chosen(): number | null;
  site(of: Shape): SiteLabel | undefined;
  over(block: Placed | null): void;
  choose(n: number): void;
}

const steps: Record<string, number> = {
  ArrowUp: 1,
  ArrowDown: -1,
  PageUp: 10,
  PageDown: -10,
  Home: -Infinity,
  End: Infinity,
};

/**
 * Takes the keys of a canvas that has the focus. The element says to a screen reader which block it
 * is; moved is called when the moment or the view changed, and offset is where the block lies that
 * was come to.
 */
export function walk(
  canvas: HTMLCanvasElement,
  wants: Walks,
): { element: HTMLElement; moved(): void; offset(): number | null } {
  const said = h("p", { class: "unseen", role: "status" });
  let here: Placed | null = null;
  const words = ({ shape }: Placed, i: number, of: number) =>
    `${bytes(shape.bytes)}, ${wants.site(shape)?.name ?? ""}, ` +
    `${life(shape.begin, shape.end)}. Block ${count(shape.n)}, ` +
    `${count(i + 1)} of ${count(of)} drawn at this moment, from the foot.`;
  const rest = (text: string) => {
    here = null;
    wants.over(null);
    said.textContent = text;
  };
  const stand = (stack: Placed[], i: number) => {
    const to = stack[i];
    if (!to) return rest("At this moment every block is too small to be drawn by itself.");
    here = to;
    wants.over(to);
    said.textContent = words(to, i, stack.length);
  };
  const stackNow = () => stackAt(wants.all(), wants.at(), wants.bytes());
  canvas.addEventListener("keydown", (e) => {
    const by = steps[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    if (by !== undefined) {
      const stack = stackNow(),
        chosen = wants.chosen();
      stand(stack, stepped(stack, here ?? stack.find((p) => p.shape.n === chosen) ?? null, by));
    } else if (e.key === "Enter" && here) wants.choose(here.shape.n);
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  canvas.addEventListener("blur", () => {
    if (here) rest("");
  });
  canvas.addEventListener("pointermove", () => {
    here = null;
  });
  return {
    element: said,
    offset: () => here && here.offset + here.shape.bytes / 2,
    moved: () => {
      if (!here) return;
      const stack = stackNow(),
        i = stack.findIndex((p) => p.shape.n === here!.shape.n);
      if (i >= 0) stand(stack, i);
      else {
        wants.over(null);
        said.textContent =
          `Block ${count(here.shape.n)} is not there, or not in view: ` +
          `${life(here.shape.begin, here.shape.end)}.`;
      }
    },
  };
}
