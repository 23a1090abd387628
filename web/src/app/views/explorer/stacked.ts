// The picture of stacked blocks with what it says: tooltip and legend. It looks at a window of
// events and bytes, which stands in the address.
//
//	hand, keys ──▶ look (events, bytes) ──▶ picture, at once
//	                 ├──▶ tile              one after the other, of where the hand is by then
//	                 └──▶ address           when the hand rests

import type { Block, Blocks } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { filtering, type Board } from "./board";
import { legend, sumsOf } from "./colours";
import { tip } from "./facts";
import { hand } from "./hand";
import { newest } from "./newest";
import type { Drawn } from "./paint";
import { picture } from "./picture";
import { axes } from "./axes";
import { moved, shapes, type Range, type Shape } from "./tile";
import { walk } from "./walk";
import { wholeTrace } from "./whole";

export interface Stacked {
  element: HTMLElement;
  fit(): void;
  zoom(factor: number): void;
  tall(factor: number): void;
  pan(share: number): void;
  lift(share: number): void;
}

const restMs = 90;

/** drawn is called whenever what was asked for is drawn, or cannot be. */
export function stacked(
  board: Board,
  mark: (name: string, value: string) => void,
  drawn: () => void,
): Stacked {
  const { app, closed, colours, labels } = board,
    drawing = picture(),
    floating = h("div", { class: "float", hidden: "" }),
    key = h("p", { class: "phases sites" });
  const unseen = h(
    "p",
    { class: "hint", hidden: "" },
    "No block that matches is drawn here. " +
      "Where some match, they are too small or not in view: zoom in, with shift in bytes.",
  );
  let { events, bytes: high } = lookedAt(board),
    last: Drawn | null = null,
    behind = "",
    shown = "",
    rest = 0; // behind: what was asked for when what is drawn there was

  const small = wholeTrace(
    () => board.whole().events[1],
    (to) => moveTo({ events: hand.span(to, board.whole().events) }),
  );

  const filtered = () => Object.keys(board.filter()).length > 0;
  let ink = colours.of;
  const look = () => {
    drawing.look({
      events,
      bytes: high,
      at: board.at(),
      peak: board.device().peak_at,
      block: app.get().block,
      dim: filtered(),
      ink,
    });
    around.look(events, high);
    small.look(events, board.at());
  };
  const recolour = () => {
    const sums = sumsOf(colours.by(), last?.all ?? [], board.whole().events[1]);
    colours.see(sums, true);
    // another function: the picture keeps colours as long as it is the same
    ink = (s) => colours.of(s);
    look();
    return sums;
  };
  const explain = () => {
    if (!last) return;
    const { all, tile } = last;
    key.replaceChildren(
      ...legend(colours, recolour(), labels, board.alone(), board.choose),
      h("span", {}, h("i", { class: "line-mark peak" }), "the peak"),
      ...(tile.reserved.some((b) => b > 0)
        ? [h("span", {}, h("i", { class: "line-mark" }), "reserved")]
        : []),
      h(
        "span",
        {},
        all.length < tile.inside && h("i", { class: "rest" }),
        drawnText(all.length, tile.inside),
      ),
    );
    unseen.hidden = !filtered() || all.some((s) => s.found);
  };
  const stateOf = () => `${board.device().device} ${filterOf(board)}`;
  const tileOf = (range: Range, bytes: Range, then: (drawn: Drawn) => void) => {
    const state = stateOf(),
      known = board.known();
    return board.ask<Blocks>(
      "tile",
      board.path("blocks", {
        from: range[0],
        to: range[1],
        low: Math.round(bytes[0]),
        high: Math.round(bytes[1]),
        width: drawing.canvas.clientWidth,
        height: drawing.canvas.clientHeight,
        ...board.filter(),
        ...known,
      }),
      (tile) => {
        // its labels are of another device
        if (board.device().device !== Number(state.split(" ")[0])) return;
        board.learn(tile.labels, known);
        if (state === stateOf()) then({ tile, all: shapes(tile) });
      },
    );
  };
  const tile = newest(
    async () => {
      const whole = board.whole(),
        range: Range = [Math.floor(events[0]), Math.ceil(events[1])],
        state = stateOf();
      const everything = !within(events, whole.events) && !within(high, whole.bytes),
        keep = (drawn: Drawn) => {
          behind = state;
          drawing.behind(drawn);
          small.show(drawn.tile);
        };
      await tileOf(range, high, (drawn) => {
        last = drawn;
        drawing.show(drawn);
        recolour();
        if (everything) keep(drawn);
        mark("tile", range.join("-"));
        walking.moved();
      });
      if (last && behind !== state && !closed.aborted)
        await tileOf(whole.events, whole.bytes, keep); // for where the hand goes next
    },
    () => {
      explain();
      drawn();
    },
  );

  const over = (shape: Shape | undefined, x: number, y: number) => {
    board.hover(shape?.n ?? null);
    floating.hidden = !shape;
    if (!shape) return;
    const more = [labels.categories[shape.category], labels.modules[shape.module]]
      .filter(Boolean)
      .join(" · ");
    const fill = (b?: Block) =>
      floating.replaceChildren(
        ...tip(shape, labels.sites[shape.site], more, b).filter(
          (c): c is Node => c instanceof Node,
        ),
      );
    if (floating.dataset.n !== String(shape.n) || !floating.hasChildNodes()) {
      floating.dataset.n = String(shape.n);
      fill();
      board.block(
        shape.n,
        (b) => {
          if (floating.dataset.n === String(b.n)) fill(b);
        },
        "hover",
      );
    }
    const wide = drawing.canvas.clientWidth,
      w = floating.offsetWidth;
    floating.style.left = `${Math.max(0, Math.min(x + 14, wide - w))}px`;
    floating.style.top = `${y + 16}px`;
  };
  board.hovered((n) => drawing.hover(n));

  const moveTo = (to: { events?: Range; bytes?: Range }) => {
    [events, high] = [to.events ?? events, to.bytes ?? high];
    look();
    tile();
    clearTimeout(rest);
    rest = window.setTimeout(() => {
      // the address follows when the hand rests
      rest = 0;
      if (closed.aborted) return;
      const whole = board.whole(),
        now = { window: within(events, whole.events), bytes: within(high, whole.bytes) };
      shown = JSON.stringify(now);
      app.set(now);
    }, restMs);
  };
  hand(
    drawing,
    {
      look: () => ({ events, bytes: high }),
      whole: board.whole,
      moveTo,
      over,
      pick: (point, offset, shape) => {
        const at = Math.min(Math.max(Math.floor(point), 0), board.device().events);
        app.set({ at, block: shape?.n ?? null });
        if (!shape && drawing.covered(point, offset))
          void board.ask<Block>(
            "picked",
            board.path("block", { at, offset: Math.floor(offset) }),
            (b) => {
              if (app.get().at === at) app.set({ block: b.n });
            },
          ); // too small to draw, but there
      },
    },
    closed,
  );

  const x = (point: number) =>
      ((point - events[0]) / (events[1] - events[0])) * drawing.canvas.clientWidth,
    y = (b: number) => (1 - (b - high[0]) / (high[1] - high[0])) * drawing.canvas.clientHeight;
  const walking = walk(drawing.canvas, {
    all: () => last?.all ?? [],
    at: board.at,
    bytes: () => high,
    chosen: () => app.get().block,
    site: (s) => labels.sites[s.site],
    choose: (n) => app.set({ block: n }),
    over: (block) => over(block?.shape, x(board.at()), block ? Math.max(y(block.offset), 0) : 0),
  });
  const around = axes(drawing.canvas, floating, walking.element);

  let device = board.device().device;
  board.follow(["window", "bytes", "device"], () => {
    const { window, bytes } = app.get(),
      now = JSON.stringify({ window, bytes });
    if (now === shown && device === board.device().device) return;
    [shown, device] = [now, board.device().device];
    ({ events, bytes: high } = lookedAt(board));
    look();
    queueMicrotask(tile);
  });
  board.follow(["at", "block"], look);
  let before = board.at();
  board.follow(["at"], () => {
    // a step, or a jump, takes the window along; an address may have a moment beside its window
    const at = board.at(),
      [from, to] = events;
    if (at === before) return;
    before = at;
    if (
      (at < from || at >= to) &&
      (rest !== 0 ||
        JSON.stringify(app.get().window) === JSON.stringify(within(events, board.whole().events)))
    )
      moveTo({ events: moved(events, at - (from + to) / 2, board.whole().events) });
    walking.moved();
  });
  let asked = filterOf(board);
  board.follow([...filtering], () => {
    if (asked === (asked = filterOf(board))) return explain();
    look();
    tile();
  });
  return {
    element: h("div", { class: "stack-panel" }, around.element, small.element, key, unseen),
    fit: () => moveTo(board.whole()),
    zoom: (factor) =>
      moveTo({
        events: hand.zoom(events, middle(events, board.at()), factor, board.whole().events),
      }),
    tall: (factor) =>
      moveTo({
        bytes: hand.tall(high, middle(high, walking.offset()), factor, board.whole().bytes),
      }),
    pan: (share) =>
      moveTo({ events: moved(events, share * (events[1] - events[0]), board.whole().events) }),
    lift: (share) =>
      moveTo({ bytes: moved(high, share * (high[1] - high[0]), board.whole().bytes) }),
  };
}

/** How many blocks of a window have a shape of their own. */
const drawnText = (drawn: number, all: number) =>
  drawn < all
    ? `${count(drawn)} of ${count(all)} blocks are drawn one by one, ` +
      "the rest is too small or not in view"
    : all === 1
      ? "1 block, drawn by itself"
      : `all ${count(all)} blocks are drawn singly`;

/** Where keys zoom: at a place that is in view, else in the middle. */
const middle = ([from, to]: Range, place: number | null) =>
  place !== null && place >= from && place <= to ? place : (from + to) / 2;

const filterOf = (board: Board) => JSON.stringify(board.filter());

/** The window of the address, or all. */
function lookedAt({ app, whole }: Board): { events: Range; bytes: Range } {
  const all = whole(),
    { window, bytes } = app.get();
  return { events: window ?? all.events, bytes: bytes ?? all.bytes };
}

/** A range as it stands in the address; null: it is the whole. */
function within([from, to]: Range, whole: Range): Range | null {
  const rounded: Range = [Math.floor(from), Math.ceil(to)];
  return rounded[0] <= whole[0] && rounded[1] >= whole[1] ? null : rounded;
}

/** Bytes and events of what a search or the legend found, in words. */
export const foundText = (f: { blocks: number; bytes: number; at_peak: number }) =>
  `${count(f.blocks)} blocks match, ${bytes(f.bytes)} in all, ${bytes(f.at_peak)} at the peak.`;
