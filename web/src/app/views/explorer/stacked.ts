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
  const stack = new Stack(board, mark, drawn);
  return stack.made();
}

class Stack {
  private readonly drawing = picture();
  private readonly floating = h("div", { class: "float", hidden: "" });
  private readonly key = h("p", { class: "phases sites" });
  private readonly unseen = h(
    "p",
    { class: "hint", hidden: "" },
    "No block that matches is drawn here. " +
      "Where some match, they are too small or not in view: zoom in, with shift in bytes.",
  );
  private readonly small: ReturnType<typeof wholeTrace>;
  private readonly tile: () => void;
  private readonly walking: ReturnType<typeof walk>;
  private readonly around: ReturnType<typeof axes>;
  private events: Range;
  private high: Range;
  private last: Drawn | null = null;
  private behind = ""; // what was asked for when what is drawn behind the tile was
  private shown = "";
  private rest = 0;
  private ink: Board["colours"]["of"];
  private readonly board: Board;
  private readonly mark: (name: string, value: string) => void;

  constructor(board: Board, mark: (name: string, value: string) => void, drawn: () => void) {
    [this.board, this.mark, this.ink] = [board, mark, board.colours.of];
    ({ events: this.events, bytes: this.high } = lookedAt(board));
    this.small = wholeTrace(
      () => board.whole().events[1],
      (to) => this.moveTo({ events: hand.span(to, board.whole().events) }),
    );
    this.tile = newest(
      () => this.fetch(),
      () => {
        this.explain();
        drawn();
      },
    );
    board.hovered((n) => this.drawing.hover(n));
    hand(
      this.drawing,
      {
        look: () => ({ events: this.events, bytes: this.high }),
        whole: board.whole,
        moveTo: (to) => this.moveTo(to),
        over: (shape, x, y) => this.over(shape, x, y),
        pick: (point, offset, shape) => this.pick(point, offset, shape),
      },
      board.closed,
    );
    this.walking = walk(this.drawing.canvas, {
      all: () => this.last?.all ?? [],
      at: () => this.board.at(),
      bytes: () => this.high,
      chosen: () => this.board.app.get().block,
      site: (s) => this.board.labels.sites[s.site],
      choose: (n) => this.board.app.set({ block: n }),
      over: (block) =>
        this.over(
          block?.shape,
          this.x(this.board.at()),
          block ? Math.max(this.y(block.offset), 0) : 0,
        ),
    });
    this.around = axes(this.drawing.canvas, this.floating, this.walking.element);
    this.follow();
  }

  private x(point: number): number {
    const [from, to] = this.events;
    return ((point - from) / (to - from)) * this.drawing.canvas.clientWidth;
  }

  private y(bytes: number): number {
    const [low, high] = this.high;
    return (1 - (bytes - low) / (high - low)) * this.drawing.canvas.clientHeight;
  }

  made(): Stacked {
    const parts = [this.around.element, this.small.element, this.key, this.unseen];
    return {
      element: h("div", { class: "stack-panel" }, ...parts),
      fit: () => this.moveTo(this.board.whole()),
      zoom: (factor) =>
        this.moveTo({
          events: hand.zoom(
            this.events,
            middle(this.events, this.board.at()),
            factor,
            this.board.whole().events,
          ),
        }),
      tall: (factor) =>
        this.moveTo({
          bytes: hand.tall(
            this.high,
            middle(this.high, this.walking.offset()),
            factor,
            this.board.whole().bytes,
          ),
        }),
      pan: (share) =>
        this.moveTo({
          events: moved(
            this.events,
            share * (this.events[1] - this.events[0]),
            this.board.whole().events,
          ),
        }),
      lift: (share) =>
        this.moveTo({
          bytes: moved(this.high, share * (this.high[1] - this.high[0]), this.board.whole().bytes),
        }),
    };
  }

  private follow(): void {
    const { board } = this;
    let device = board.device().device;
    board.follow(["window", "bytes", "device"], () => {
      const { window, bytes } = board.app.get(),
        now = JSON.stringify({ window, bytes });
      if (now === this.shown && device === board.device().device) return;
      [this.shown, device] = [now, board.device().device];
      ({ events: this.events, bytes: this.high } = lookedAt(this.board));
      this.look();
      queueMicrotask(this.tile);
    });
    board.follow(["at", "block"], this.look);
    let before = board.at();
    board.follow(["at"], () => {
      // a step, or a jump, takes the window along; an address may have a moment beside its window
      const at = board.at(),
        [from, to] = this.events;
      if (at === before) return;
      before = at;
      if (
        (at < from || at >= to) &&
        (this.rest !== 0 ||
          JSON.stringify(board.app.get().window) ===
            JSON.stringify(within(this.events, board.whole().events)))
      )
        this.moveTo({ events: moved(this.events, at - (from + to) / 2, board.whole().events) });
      this.walking.moved();
    });
    let asked = filterOf(this.board);
    board.follow([...filtering], () => {
      if (asked === (asked = filterOf(this.board))) return this.explain();
      this.look();
      this.tile();
    });
  }

  private readonly filtered = () => Object.keys(this.board.filter()).length > 0;

  private readonly look = () => {
    this.drawing.look({
      events: this.events,
      bytes: this.high,
      at: this.board.at(),
      peak: this.board.device().peak_at,
      block: this.board.app.get().block,
      dim: this.filtered(),
      ink: this.ink,
    });
    this.around.look(this.events, this.high);
    this.small.look(this.events, this.board.at());
  };

  private recolour() {
    const sums = sumsOf(
      this.board.colours.by(),
      this.last?.all ?? [],
      this.board.whole().events[1],
    );
    this.board.colours.see(sums, true);
    // another function: the picture keeps colours as long as it is the same
    this.ink = (s) => this.board.colours.of(s);
    this.look();
    return sums;
  }

  private explain() {
    if (!this.last) return;
    const { all, tile } = this.last;
    this.key.replaceChildren(
      ...legend(
        this.board.colours,
        this.recolour(),
        this.board.labels,
        this.board.alone(),
        this.board.choose,
      ),
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
    this.unseen.hidden = !this.filtered() || all.some((s) => s.found);
  }

  private readonly stateOf = () => `${this.board.device().device} ${filterOf(this.board)}`;

  private tileOf(range: Range, bytes: Range, then: (drawn: Drawn) => void) {
    const state = this.stateOf(),
      known = this.board.known();
    return this.board.ask<Blocks>(
      "tile",
      this.board.path("blocks", {
        from: range[0],
        to: range[1],
        low: Math.round(bytes[0]),
        high: Math.round(bytes[1]),
        width: this.drawing.canvas.clientWidth,
        height: this.drawing.canvas.clientHeight,
        ...this.board.filter(),
        ...known,
      }),
      (tile) => {
        // its labels are of another device
        if (this.board.device().device !== Number(state.split(" ")[0])) return;
        this.board.learn(tile.labels, known);
        if (state === this.stateOf()) then({ tile, all: shapes(tile) });
      },
    );
  }

  /** Fetches what is looked at, and then the whole for where the hand goes next. */
  private async fetch(): Promise<void> {
    const whole = this.board.whole(),
      range: Range = [Math.floor(this.events[0]), Math.ceil(this.events[1])],
      state = this.stateOf();
    const everything = !within(this.events, whole.events) && !within(this.high, whole.bytes),
      keep = (drawn: Drawn) => {
        this.behind = state;
        this.drawing.behind(drawn);
        this.small.show(drawn.tile);
      };
    await this.tileOf(range, this.high, (drawn) => {
      this.last = drawn;
      this.drawing.show(drawn);
      this.recolour();
      if (everything) keep(drawn);
      this.mark("tile", range.join("-"));
      this.walking.moved();
    });
    if (this.last && this.behind !== state && !this.board.closed.aborted)
      await this.tileOf(whole.events, whole.bytes, keep); // for where the hand goes next
  }

  private over(shape: Shape | undefined, x: number, y: number) {
    this.board.hover(shape?.n ?? null);
    this.floating.hidden = !shape;
    if (!shape) return;
    const more = [
      this.board.labels.categories[shape.category],
      this.board.labels.modules[shape.module],
    ]
      .filter(Boolean)
      .join(" · ");
    const fill = (b?: Block) =>
      this.floating.replaceChildren(
        ...tip(shape, this.board.labels.sites[shape.site], more, b).filter(
          (c): c is Node => c instanceof Node,
        ),
      );
    if (this.floating.dataset.n !== String(shape.n) || !this.floating.hasChildNodes()) {
      this.floating.dataset.n = String(shape.n);
      fill();
      this.board.block(
        shape.n,
        (b) => {
          if (this.floating.dataset.n === String(b.n)) fill(b);
        },
        "hover",
      );
    }
    const wide = this.drawing.canvas.clientWidth,
      w = this.floating.offsetWidth;
    this.floating.style.left = `${Math.max(0, Math.min(x + 14, wide - w))}px`;
    this.floating.style.top = `${y + 16}px`;
  }

  private readonly moveTo = (to: { events?: Range; bytes?: Range }) => {
    [this.events, this.high] = [to.events ?? this.events, to.bytes ?? this.high];
    this.look();
    this.tile();
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => {
      // the address follows when the hand rests
      this.rest = 0;
      if (this.board.closed.aborted) return;
      const whole = this.board.whole(),
        now = { window: within(this.events, whole.events), bytes: within(this.high, whole.bytes) };
      this.shown = JSON.stringify(now);
      this.board.app.set(now);
    }, restMs);
  };

  private pick(point: number, offset: number, shape: Shape | undefined): void {
    const at = Math.min(Math.max(Math.floor(point), 0), this.board.device().events);
    this.board.app.set({ at, block: shape?.n ?? null });
    if (!shape && this.drawing.covered(point, offset))
      void this.board.ask<Block>(
        "picked",
        this.board.path("block", { at, offset: Math.floor(offset) }),
        (b) => {
          if (this.board.app.get().at === at) this.board.app.set({ block: b.n });
        },
      ); // too small to draw, but there
  }
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
