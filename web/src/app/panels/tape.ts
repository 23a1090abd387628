// A segment map as a tape: the segments one after the other by address. Two on one scale show what
// other settings change: each by itself, or in lanes of the same rows.

import { whileShown } from "../../draw/shown";
import { edges, lastAt, put as stretch, type Tape as Rows } from "../../draw/tape";
import { theme } from "../../draw/theme";
import { bytes } from "../../lib/format";
import { h } from "../../views/dom";

const gap = 3;

/**
 * A segment as a what-if has it; a block is its size, its state (0 cached, 1 in use, 2 waiting for
 * another stream), its number, and what Paint colours it by.
 */
export interface Segment {
  size_bytes: number;
  large?: boolean;
  expandable?: boolean;
  stream?: number;
  private?: boolean;
  blocks: [size: number, state: number, n: number, value?: number][];
}

interface Placed {
  from: number;
  size: number;
  state: number;
  n: number;
  value: number | undefined;
  segment: Segment;
  lane: number;
}

function stateOf({ state, segment }: Placed): string {
  if (state === 2) return "freed, another stream still uses it";
  if (state !== 0) return "in use";
  return segment.blocks.every(([, block]) => block === 0) ? "in a free segment" : "cached";
}

/** Colours of blocks in use by their value, and what is told of the block under the pointer. */
export interface Paint {
  ink(value: number): string;
  over(n: number | null): void;
}

export interface Tape {
  element: HTMLElement;
  show(lanes: Segment[][], perRow: number, title: string, note: string): void;
  choose(n: number | null): void;
  mark(n: number | null): void;
}

const byNumber = (n: number) => (n >= 0 ? `, block ${n.toLocaleString("en")}` : "");

/** A tape whose rows have lanes, each of its height. */
interface Plan extends Rows {
  high: number;
}

/** Paints a stretch of memory in its lane. */
const put = (
  plan: Plan,
  { from, size, lane }: Pick<Placed, "from" | "size" | "lane">,
  paint: (x: number, y: number, w: number) => void,
): void => stretch(plan, from, size, (x, y, w) => paint(x, y + lane * (plan.high + 1), w));

function drawBlocks(
  plan: Plan,
  placed: Placed[],
  chosen: number | null,
  painted: Paint | undefined,
): void {
  const colour = theme(),
    inks = [colour("track"), colour("curve-0"), colour("warning")],
    bright = colour("curve-1");
  for (const p of placed)
    put(plan, p, (x, y, w) => {
      plan.ctx.fillStyle =
        p.state === 1 && p.value !== undefined && painted
          ? painted.ink(p.value)
          : chosen !== null && p.n === chosen && p.state
            ? bright
            : inks[p.state]!;
      plan.ctx.fillRect(x, y, Math.max(w - (w > 3 ? 0.6 : 0), 0.3), plan.high);
    });
}

/** Where each segment begins. */
function drawEdges(plan: Plan, lanes: Segment[][]): void {
  plan.ctx.fillStyle = theme()("muted");
  for (const [lane, segments] of lanes.entries())
    edges(plan, segments, { least: 3, y: lane * (plan.high + 1), high: plan.high });
}

function outline(plan: Plan, one: Placed | undefined, ink: string, wide: number): void {
  if (!one) return;
  put(plan, one, (x, y, w) => {
    plan.ctx.strokeStyle = theme()(ink);
    plan.ctx.lineWidth = wide;
    plan.ctx.strokeRect(x, y, Math.max(w, 2), plan.high);
  });
}

/** Every block of some lanes, the number of the first of each lane, and how many rows they take. */
function laid(
  lanes: Segment[][],
  per: number,
): { placed: Placed[]; first: number[]; rows: number } {
  const placed: Placed[] = [],
    first: number[] = [];
  let rows = 1;
  for (const [lane, segments] of lanes.entries()) {
    let from = 0;
    first.push(placed.length);
    for (const segment of segments)
      for (const [size, state, n, value] of segment.blocks) {
        placed.push({ from, size, state, n, value, segment, lane });
        from += size;
      }
    rows = Math.max(rows, Math.ceil(from / per - 1e-9));
  }
  return { placed, first, rows };
}

/** The number of the block of a lane that holds an offset; −1: none does. */
function blockAt(placed: Placed[], first: number[], lane: number, offset: number): number {
  const i = lastAt(placed, offset, first[lane] ?? 0, (first[lane + 1] ?? placed.length) - 1),
    p = placed[i];
  return p && p.lane === lane && offset < p.from + p.size ? i : -1;
}

const numbered = (placed: Placed[], n: number | null): Placed | undefined =>
  n === null ? undefined : placed.find((p) => p.n === n && p.state);

/** A block in words. */
const saidOf = (p: Placed, label: string, named: (n: number) => string): string =>
  `${label}: ${bytes(p.size)} ${stateOf(p)}${named(p.n)}, ` +
  `in a ${p.segment.large ? "large" : "small"}` +
  `${p.segment.expandable ? ", expandable" : ""} segment of ${bytes(p.segment.size_bytes)}`;

/**
 * Labels are those of its lanes; pick is called with the number of the block under the pointer; −1:
 * it is cached, or not known. named says it in words.
 */
export function tape(
  labels: string[],
  pick: (n: number) => void,
  tell: (text: string) => void,
  named = byNumber,
  painted?: Paint,
): Tape {
  const [canvas, head] = [h("canvas", { role: "img", tabindex: "0" }), h("h3", {})],
    element = h("div", { class: "tape-box" }, head, canvas);
  const high = labels.length > 1 ? 11 : 13,
    row = (high + 1) * labels.length - 1 + gap;
  let placed: Placed[] = [],
    first: number[] = [],
    lanes: Segment[][] = [],
    [per, rows, at] = [1, 1, -1],
    chosen: number | null = null,
    marked: number | null = null;
  const draw = () => {
    const width = canvas.clientWidth,
      ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = rows * row * ratio;
    canvas.style.height = `${rows * row}px`;
    const ctx = canvas.getContext("2d")!;
    ctx.scale(ratio, ratio);
    const plan: Plan = { ctx, width, per, row, rows: Infinity, high };
    drawBlocks(plan, placed, chosen, painted);
    drawEdges(plan, lanes);
    outline(plan, at >= 0 ? placed[at] : numbered(placed, marked), "muted", 2);
    outline(plan, numbered(placed, chosen), "text", 2.5);
  };
  const under = (x: number, y: number): number => {
    const across = Math.min(Math.max(x / canvas.clientWidth, 0), 0.99999),
      offset = (Math.floor(y / row) + across) * per;
    const lane = Math.min(Math.floor((y % row) / (high + 1)), labels.length - 1);
    return blockAt(placed, first, lane, offset);
  };
  const point = (to: number) => {
    if (to === at) return;
    at = to;
    const p = placed[at];
    painted?.over(p?.state ? p.n : null);
    draw();
    if (p) tell(saidOf(p, labels[p.lane]!, named));
  };
  const choose = (p: Placed | undefined) => {
    if (p) pick(p.state ? p.n : -1);
  };
  canvas.addEventListener("pointermove", (e) => point(under(e.offsetX, e.offsetY)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (e) => choose(placed[under(e.offsetX, e.offsetY)]));
  canvas.addEventListener("keydown", (e) => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (step) point(Math.min(Math.max(at + step, 0), placed.length - 1));
    else if (e.key === "Enter") choose(placed[at]);
    if (step || (e.key === "Enter" && placed[at])) e.preventDefault();
  });
  new ResizeObserver(draw).observe(canvas);
  whileShown(canvas, "hightide:theme", draw);
  return {
    element,
    choose: (n) => {
      chosen = n === null || n < 0 ? null : n;
      draw();
    },
    mark: (n) => {
      const fresh = n !== marked;
      marked = n;
      if (fresh && at < 0) draw();
    },
    show: (all, perRow, title, note) => {
      [lanes, per, at] = [all, perRow, -1];
      ({ placed, first, rows } = laid(all, per));
      canvas.setAttribute("aria-label", `${title}: ${note}`);
      head.replaceChildren(title, h("span", {}, note));
      draw();
    },
  };
}
