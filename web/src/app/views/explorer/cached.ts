// What the allocator held over the window: in use, cached beside blocks in use, cached in free
// segments. The life of the chosen block lies over it.

import type { Block, Cached } from "../../../api";
import uPlot from "uplot";
import { axis, byteAxis, chart } from "../../../draw/chart";
import { faint, theme } from "../../../draw/theme";
import { bytes, count } from "../../../lib/format";
import { fromZero } from "../../../lib/scales";
import { h } from "../../../views/dom";
import type { Board } from "./board";
import { whenSeen } from "./seen";

const tall = 200,
  restMs = 150;
const parts = [
  ["free", "curve-7", "cached, in free segments"],
  ["split", "block-1", "cached, beside blocks in use (inactive split)"],
  ["active", "block-0", "in use"],
] as const;

export function cachedPanel(
  board: Board,
  mark: (name: string, value: string) => void,
): HTMLElement {
  const { app } = board,
    box = h("div", {
      class: "chart",
      role: "img",
      "aria-label": "In use, cached and reserved, event by event",
    }),
    said = h("p", { class: "reading", role: "status" }, "Asked for when it is in view.");
  let shown: Cached | null = null,
    block: Block | null = null,
    asked = "";
  const tell = (i: number) => {
    if (shown && i >= 0 && i < shown.point.length) said.textContent = saidOf(shown, i);
  };
  const plot = () => {
    const c = shown,
      sums = c
        ? [c.point, c.reserved, c.reserved.map((r, i) => r - c.free[i]!), c.active]
        : [
            [0, 1],
            [null, null],
            [null, null],
            [null, null],
          ];
    return {
      options: optionsOf(board, app.get().window ?? board.whole().events, tell, () => block),
      data: sums as unknown as uPlot.AlignedData,
    };
  };
  let drawn: ReturnType<typeof chart> | null = null;
  const again = () => {
    if (drawn) drawn.redraw();
    else if (shown?.known && box.isConnected) drawn = chart(box, tall, plot);
  };
  const ask = () => {
    const [from, to] = app.get().window ?? board.whole().events,
      path = board.path("cached", { from, to, columns: Math.max(box.clientWidth, 300) });
    if (path === asked) return again();
    asked = path;
    board.ask<Cached>("cached", path, (c) => {
      shown = c;
      if (!c.known)
        box.replaceChildren(
          h(
            "p",
            { class: "hint" },
            "The file tells of no segments, so what was cached is not known.",
          ),
        );
      again();
      tell(mostCached(c));
      mark("cached", `${from}-${to}`);
    });
  };
  const seen = whenSeen(board, restMs, ask);
  board.follow(["window", "device"], seen.again);
  board.follow(["at"], () => drawn?.plot()?.redraw(false));
  board.follow(["block", "device"], () => {
    const n = app.get().block;
    block = null;
    if (n === null) drawn?.plot()?.redraw(false);
    else
      board.block(
        n,
        (b) => {
          if (app.get().block === n) {
            block = b;
            drawn?.plot()?.redraw(false);
          }
        },
        "life",
      );
  });
  const element = h("div", { class: "cached-panel" }, box, said, legend());
  seen.watch(element);
  return element;
}

/** One column in words. */
const saidOf = (c: Cached, i: number): string =>
  [
    `${c.point[i] === 0 ? "before the first event" : `after event ${count(c.point[i]! - 1)}`}`,
    `${bytes(c.active[i]!)} in use`,
    `${bytes(c.split[i]!)} cached beside blocks in use`,
    `${bytes(c.free[i]!)} in free segments`,
    `${bytes(c.reserved[i]!)} reserved`,
  ].join(" · ");

/** The column in which most was cached. */
const mostCached = (c: Cached): number =>
  c.point.reduce(
    (best, _, i) =>
      c.reserved[i]! - c.active[i]! > c.reserved[best]! - c.active[best]! ? i : best,
    0,
  );

const legend = (): HTMLElement =>
  h(
    "p",
    { class: "phases" },
    ...[...parts]
      .reverse()
      .map(([, ink, text]) => h("span", {}, h("i", { style: `background:var(--${ink})` }), text)),
    h("span", {}, h("i", { style: "background:var(--reserved)" }), "reserved"),
    h("span", {}, "of each column the event at which most was cached"),
  );

function optionsOf(
  board: Board,
  window: readonly [number, number],
  tell: (i: number) => void,
  block: () => Block | null,
): Omit<uPlot.Options, "width" | "height"> {
  const colour = theme();
  return {
    padding: [10, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: {
        time: false,
        auto: false,
        min: window[0],
        max: Math.max(window[1] - 1, window[0] + 1),
      },
      y: { range: (_, low, high) => fromZero(low, high) },
    },
    axes: [axis({ values: (_, ticks) => ticks.map((v) => count(v)), space: 90 }), byteAxis()],
    series: [
      {},
      ...parts.map(([name, ink, label], i) => ({
        label,
        stroke: i === 0 ? colour("reserved") : colour(ink),
        width: i === 0 ? 1.5 : 1,
        fill: faint(colour(ink), name === "free" ? 0.35 : 0.92),
      })),
    ],
    hooks: {
      draw: [(u) => lines(u, board.at(), block())],
      setCursor: [(u) => tell(u.cursor.idx ?? -1)],
      ready: [
        (u) =>
          u.over.addEventListener("click", (e) =>
            board.goTo(Math.round(u.posToVal(e.offsetX, "x"))),
          ),
      ],
    },
  };
}

/**
 * The moment, and the life of the chosen block: from its allocation over the request to free it to
 * the free.
 */
function lines(u: uPlot, at: number, block: Block | null): void {
  const { ctx } = u,
    { left, top, width, height } = u.bbox,
    colour = theme(),
    ratio = devicePixelRatio || 1;
  const x = (p: number) => Math.min(Math.max(u.valToPos(p, "x", true), left), left + width);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  const line = (p: number, ink: string, text: string, row: number) => {
    if (p < (u.scales.x!.min ?? 0) || p > (u.scales.x!.max ?? 0)) return;
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.lineWidth = 1.5 * ratio;
    ctx.beginPath();
    ctx.moveTo(x(p), top);
    ctx.lineTo(x(p), top + height);
    ctx.stroke();
    ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
    const end = x(p) > left + width * 0.8;
    ctx.textAlign = end ? "right" : "left";
    ctx.lineWidth = 3 * ratio;
    ctx.strokeStyle = colour("panel");
    const place = [x(p) + (end ? -5 : 5) * ratio, top + (12 + row * 14) * ratio] as const;
    ctx.strokeText(text, ...place);
    ctx.fillText(text, ...place);
  };
  if (block) {
    const end = block.end < 0 ? left + width : x(block.end),
      gone = block.gone < 0 ? left + width : x(block.gone);
    ctx.fillStyle = faint(colour("text"), 0.14);
    ctx.fillRect(x(block.begin), top, Math.max(end - x(block.begin), ratio), height);
    ctx.fillStyle = faint(colour("warning"), 0.28);
    ctx.fillRect(end, top, Math.max(gone - end, 0), height);
    if (block.begin > 0) line(block.begin, colour("text"), "allocated", 1);
    if (block.end > 0)
      line(block.end, colour("text"), block.gone > block.end + 1 ? "free requested" : "freed", 2);
    if (block.gone > block.end + 1 && block.end > 0)
      line(block.gone, colour("warning"), "free completed", 3);
  }
  line(at, colour("accent"), "the moment", 0);
  ctx.restore();
}
