// A whole in small, with a brush over what is looked at: drag its edges or its middle, or draw a
// new one. Who uses it draws the whole on the canvas.

import { h } from "../views/dom";

export type Span = readonly [from: number, to: number];

export interface Overview {
  element: HTMLElement;
  canvas: HTMLCanvasElement;
  show(now: Span): void;
}

/** What a screen reader is told of the edges: what they are edges of, and how a place is said. */
export interface Said {
  from: string;
  to: string;
  at(place: number): string;
}

/** move is told each stretch while a hand drags; it is at least a few pixels. */
export function overview(
  end: () => number,
  move: (to: [number, number]) => void,
  said: Said,
): Overview {
  const handle = (name: string, label: string) =>
    h("i", {
      class: `handle ${name}`,
      role: "slider",
      tabindex: "0",
      "aria-orientation": "horizontal",
      "aria-label": label,
    });
  const canvas = h("canvas", { "aria-hidden": "true" }),
    from = handle("from", said.from),
    to = handle("to", said.to),
    brush = h("div", { class: "brush" }, from, to);
  const element = h("div", { class: "minimap" }, canvas, brush);
  let shown: Span = [0, 1];

  const placeAt = (clientX: number) => {
    const box = element.getBoundingClientRect();
    return Math.min(Math.max((clientX - box.left) / Math.max(box.width, 1), 0), 1) * end();
  };
  dragged(element, end, placeAt, () => shown, move);
  element.addEventListener("dblclick", () => move([0, end()]));
  brush.addEventListener("keydown", (e) => {
    const by =
        (({ ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[e.key] ?? 0) * end()) / 100,
      edge = e.target === from ? "from" : "to",
      [a, b] = shown;
    const to = e.key === "Home" ? 0 : e.key === "End" ? end() : (edge === "from" ? a : b) + by;
    if (!by && e.key !== "Home" && e.key !== "End") return;
    e.preventDefault();
    e.stopPropagation();
    const now: [number, number] =
      edge === "from"
        ? [Math.max(0, Math.min(to, b - end() / 1000)), b]
        : [a, Math.min(end(), Math.max(to, a + end() / 1000))];
    shown = now; // keys may come faster than frames
    move(now);
  });
  return {
    element,
    canvas,
    show(now) {
      shown = now;
      const share = (t: number) => `${((t / end()) * 100).toFixed(3)}%`;
      brush.style.left = share(now[0]);
      brush.style.width = share(now[1] - now[0]);
      for (const [e, t] of [
        [from, now[0]],
        [to, now[1]],
      ] as const) {
        for (const [name, v] of [
          ["valuemin", 0],
          ["valuemax", Math.round(end())],
          ["valuenow", Math.round(t)],
        ] as const)
          e.setAttribute(`aria-${name}`, String(v));
        e.setAttribute("aria-valuetext", said.at(t));
      }
    },
  };
}

/** A hand on the element: it moves an edge, the middle, or draws a new stretch. */
function dragged(
  element: HTMLElement,
  end: () => number,
  placeAt: (clientX: number) => number,
  shown: () => Span,
  move: (to: [number, number]) => void,
): void {
  element.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault();
    element.setPointerCapture(e.pointerId);
    const begun = placeAt(e.clientX),
      [a, b] = shown(),
      near = (6 / Math.max(element.clientWidth, 1)) * end(),
      whole = a <= 0 && b >= end();
    const part =
      Math.abs(begun - a) < near && !whole
        ? "from"
        : Math.abs(begun - b) < near && !whole
          ? "to"
          : begun > a && begun < b && !whole
            ? "middle"
            : "new";
    let moved = false;
    const drag = (m: PointerEvent) => {
      const now = placeAt(m.clientX);
      if (Math.abs(m.clientX - e.clientX) < 3 && !moved) return;
      moved = true;
      if (part === "from") move([Math.min(now, b), Math.max(now, b)]);
      else if (part === "to") move([Math.min(a, now), Math.max(a, now)]);
      else if (part === "middle") move([a + now - begun, b + now - begun]);
      else move([Math.min(begun, now), Math.max(begun, now)]);
    };
    const up = () => {
      element.removeEventListener("pointermove", drag);
      // a click brings what is shown there
      if (!moved && part === "new" && !whole) move([begun - (b - a) / 2, begun + (b - a) / 2]);
    };
    element.addEventListener("pointermove", drag);
    element.addEventListener("pointerup", up, { once: true });
    element.addEventListener("pointercancel", up, { once: true });
  });
}
