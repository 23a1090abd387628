// The picture of stacked blocks with what it says: tooltip and legend. It looks at a window of events and bytes, which stands in the address.
//
//	hand ──▶ look (events, bytes) ──▶ picture, at once
//	           └──▶ address, tile     when the hand rests

import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import type { Board } from "./board";
import { legend, sumsOf } from "./colours";
import { tip, type Block } from "./facts";
import { hand } from "./hand";
import { picture } from "./picture";
import { shapes, type Range, type Shape, type Tile } from "./tile";

export interface Stacked { element: HTMLElement; fit(): void; zoom(factor: number): void }

const restMs = 90;

export function stacked(board: Board, mark: (name: string, value: string) => void): Stacked {
  const { app, closed, colours, labels } = board, drawing = picture(), floating = h("div", { class: "float", hidden: "" }), key = h("p", { class: "phases sites" });
  const unseen = h("p", { class: "hint", hidden: "" }, "None that matches is large enough to draw here. Zoom in, with shift in bytes.");
  let { events, bytes: high } = lookedAt(board), all: Shape[] = [], inside = 0, shown = "", rest = 0;

  const filtered = () => app.get().search !== "" || app.get().only !== "";
  const look = () => drawing.look({ events, bytes: high, at: board.at(), block: app.get().block, dim: filtered(), ink: colours.of });
  const explain = () => {
    const by = colours.by(), sums = sumsOf(by, all, board.whole().events[1]);
    colours.see(sums);
    key.replaceChildren(...legend(colours, sums, labels, app.get().only, (only) => app.set({ only })),
      h("span", {}, h("i", { class: "rest" }), `${count(all.length)} of ${count(inside)} blocks are drawn singly, the rest is too small or not in view`));
    look();
  };
  const tile = () => board.ask<Tile>("tile", board.path("blocks", { from: Math.floor(events[0]), to: Math.ceil(events[1]), low: Math.round(high[0]), high: Math.round(high[1]), width: drawing.canvas.clientWidth, height: drawing.canvas.clientHeight, ...board.filter(), ...board.known() }), (t) => {
    board.learn(t.labels);
    [all, inside] = [shapes(t), t.inside];
    drawing.show(t, all);
    explain();
    unseen.hidden = !filtered() || all.some((s) => s.found);
    mark("tile", `${Math.floor(events[0])}-${Math.ceil(events[1])}`);
  });

  const over = (shape: Shape | undefined, x: number, y: number) => {
    board.hover(shape?.n ?? null);
    floating.hidden = !shape;
    if (!shape) return;
    const more = [labels.categories[shape.category], labels.modules[shape.module]].filter(Boolean).join(" · ");
    const fill = (b?: Block) => floating.replaceChildren(...tip(shape, labels.sites[shape.site], more, b).filter((c): c is Node => c instanceof Node));
    if (floating.dataset.n !== String(shape.n) || !floating.hasChildNodes()) {
      floating.dataset.n = String(shape.n);
      fill();
      board.block(shape.n, (b) => { if (floating.dataset.n === String(b.n)) fill(b); }, "hover");
    }
    const wide = drawing.canvas.clientWidth, w = floating.offsetWidth;
    floating.style.left = `${Math.max(0, Math.min(x + 14, wide - w))}px`;
    floating.style.top = `${y + 16}px`;
  };
  board.hovered((n) => drawing.hover(n));

  const moveTo = (to: { events?: Range; bytes?: Range }) => {
    [events, high] = [to.events ?? events, to.bytes ?? high];
    look();
    clearTimeout(rest);
    rest = window.setTimeout(() => { // the address and the server follow when the hand rests
      if (closed.aborted) return;
      const whole = board.whole(), now = { window: within(events, whole.events), bytes: within(high, whole.bytes) };
      shown = JSON.stringify(now);
      app.set(now);
      tile();
    }, restMs);
  };
  hand(drawing, { look: () => ({ events, bytes: high }), whole: board.whole, moveTo, over, pick: (point, offset, shape) => {
    const at = Math.min(Math.max(Math.floor(point), 0), board.device().events);
    app.set({ at, block: shape?.n ?? null });
    if (!shape && drawing.covered(point, offset)) board.ask<Block>("picked", board.path("block", { at, offset: Math.floor(offset) }), (b) => { if (app.get().at === at) app.set({ block: b.n }); }); // too small to draw, but there
  } });

  let device = board.device().device;
  board.follow(["window", "bytes", "device"], () => {
    const { window, bytes } = app.get(), now = JSON.stringify({ window, bytes });
    if (now === shown && device === board.device().device) return;
    [shown, device] = [now, board.device().device];
    ({ events, bytes: high } = lookedAt(board));
    look();
    queueMicrotask(tile);
  });
  board.follow(["at", "block"], look);
  let asked = filterOf(board);
  board.follow(["search", "only", "colour"], () => {
    if (asked === (asked = filterOf(board))) return void (all.length && explain());
    look();
    tile();
  });
  return {
    element: h("div", { class: "stacked" }, drawing.canvas, floating, key, unseen),
    fit: () => moveTo(board.whole()),
    zoom: (factor) => moveTo({ events: hand.zoom(events, (events[0] + events[1]) / 2, factor, board.whole().events) }),
  };
}

const filterOf = (board: Board) => JSON.stringify(board.filter());

/** The window of the address, or all. */
function lookedAt({ app, whole }: Board): { events: Range; bytes: Range } {
  const all = whole(), { window, bytes } = app.get();
  return { events: window ?? all.events, bytes: bytes ?? all.bytes };
}

/** A range as it stands in the address; null: it is the whole. */
function within([from, to]: Range, whole: Range): Range | null {
  const rounded: Range = [Math.floor(from), Math.ceil(to)];
  return rounded[0] <= whole[0] && rounded[1] >= whole[1] ? null : rounded;
}

/** Bytes and events of what a search or the legend found, in words. */
export const foundText = (f: { blocks: number; bytes: number; at_peak: number }) => `${count(f.blocks)} blocks match, ${bytes(f.bytes)} in all, ${bytes(f.at_peak)} at the peak.`;
