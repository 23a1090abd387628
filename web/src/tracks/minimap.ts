// The whole run in small, with a brush over what the tracks show: drag its edges or its middle, or draw a new one.

import { faint, theme } from "../draw/theme";
import { shape } from "../lib/columns";
import { duration } from "../lib/format";
import { h } from "../views/dom";
import type { Span } from "./look";
import { clean, extent, inkOf, paintEventLines } from "./paint";
import type { Source } from "./source";

export interface Minimap { element: HTMLElement; draw(source: Source, shown: Span): void }

const high = 44;

/** move is told each stretch while a hand drags; it is at least a few pixels. */
export function minimap(end: () => number, move: (to: Span) => void): Minimap {
  const handle = (name: string) => h("i", { class: `handle ${name}`, role: "slider", tabindex: "0", "aria-orientation": "horizontal", "aria-label": name === "from" ? "Beginning of what is shown" : "End of what is shown" });
  const canvas = h("canvas", { "aria-hidden": "true" }), from = handle("from"), to = handle("to"), brush = h("div", { class: "brush" }, from, to);
  const element = h("div", { class: "minimap" }, canvas, brush);
  let shown: Span = [0, 1], drawn = "";

  const timeAt = (clientX: number) => { const box = element.getBoundingClientRect(); return Math.min(Math.max((clientX - box.left) / Math.max(box.width, 1), 0), 1) * end(); };
  element.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault();
    element.setPointerCapture(e.pointerId);
    const begun = timeAt(e.clientX), [a, b] = shown, near = (6 / Math.max(element.clientWidth, 1)) * end(), whole = a <= 0 && b >= end();
    const part = Math.abs(begun - a) < near && !whole ? "from" : Math.abs(begun - b) < near && !whole ? "to" : begun > a && begun < b && !whole ? "middle" : "new";
    let moved = false;
    const drag = (m: PointerEvent) => {
      const now = timeAt(m.clientX);
      if (Math.abs(m.clientX - e.clientX) < 3 && !moved) return;
      moved = true;
      if (part === "from") move([Math.min(now, b), Math.max(now, b)]);
      else if (part === "to") move([Math.min(a, now), Math.max(a, now)]);
      else if (part === "middle") move([a + now - begun, b + now - begun]);
      else move([Math.min(begun, now), Math.max(begun, now)]);
    };
    const up = () => {
      element.removeEventListener("pointermove", drag);
      if (!moved && part === "new" && !whole) move([begun - (b - a) / 2, begun + (b - a) / 2]); // a click brings what is shown there
    };
    element.addEventListener("pointermove", drag);
    element.addEventListener("pointerup", up, { once: true });
    element.addEventListener("pointercancel", up, { once: true });
  });
  element.addEventListener("dblclick", () => move([0, end()]));
  brush.addEventListener("keydown", (e) => {
    const by = ({ ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[e.key] ?? 0) * end() / 100, edge = e.target === from ? "from" : "to", [a, b] = shown;
    const to = e.key === "Home" ? 0 : e.key === "End" ? end() : (edge === "from" ? a : b) + by;
    if (!by && e.key !== "Home" && e.key !== "End") return;
    e.preventDefault();
    e.stopPropagation();
    shown = edge === "from" ? [Math.max(0, Math.min(to, b - end() / 1000)), b] : [a, Math.min(end(), Math.max(to, a + end() / 1000))]; // keys may come faster than frames
    move(shown);
  });

  const draw = (source: Source, now: Span) => {
    shown = now;
    const whole: Span = [0, end()], width = element.clientWidth, share = (t: number) => `${((t / whole[1]) * 100).toFixed(3)}%`;
    brush.style.left = share(now[0]);
    brush.style.width = share(now[1] - now[0]);
    for (const [e, t] of [[from, now[0]], [to, now[1]]] as const) {
      for (const [name, v] of [["valuemin", 0], ["valuemax", Math.round(whole[1])], ["valuenow", Math.round(t)]] as const) e.setAttribute(`aria-${name}`, String(v));
      e.setAttribute("aria-valuetext", duration(t));
    }
    if (width === 0) return;
    const lead = source.curves.find((c) => c.name === source.main && c.readings.shown.x.length > 1) ?? source.curves.find((c) => c.readings.shown.x.length > 1);
    const of = [width, whole[1], lead?.key, lead?.readings.shown.x.length, source.marks.length, document.documentElement.dataset.theme, devicePixelRatio].join("|");
    if (of === drawn) return; // only the brush has moved
    drawn = of;
    const ctx = clean(canvas, { width, height: high }), colour = theme();
    if (lead) {
      const { x, y } = shape(lead.readings.shown, Math.max(50, width / 2)), [, top] = extent([{ columns: { x, y }, ink: "", dash: false, fill: false }], whole) ?? [0, 1];
      const path = new Path2D(), at = (t: number) => (t / whole[1]) * width, up = (v: number) => high - 2 - (Math.max(v, 0) / (top || 1)) * (high - 8);
      x.forEach((t, i) => path.lineTo(at(t), up(y[i]!)));
      const area = new Path2D(path);
      area.lineTo(at(x.at(-1)!), high); area.lineTo(at(x[0]!), high); area.closePath();
      ctx.fillStyle = faint(colour(lead.colour), 0.2); ctx.fill(area);
      ctx.strokeStyle = colour(lead.colour); ctx.lineWidth = 1; ctx.stroke(path);
    }
    paintEventLines(ctx, source.marks, whole, { width, height: high });
    for (const m of source.marks) { ctx.fillStyle = colour(inkOf(m)); ctx.fillRect((m.time_ns / whole[1]) * width - 1.5, 0, 3, 4); }
  };
  return { element, draw };
}
