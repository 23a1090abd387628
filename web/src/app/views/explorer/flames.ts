// The call stacks of what lived at the moment or the peak, of what a stretch allocated, held or
// freed, or the difference of two moments.

import type { StackSet } from "../../../api";
import { bytes, count } from "../../../lib/format";
import { grow } from "../../../lib/icicle";
import { patternOf } from "../../../state/selection";
import { h } from "../../../views/dom";
import {
  calledBy,
  choices,
  flame,
  plain,
  views,
  type Graph,
  type How,
} from "../../../views/flames/flame";
import { changeKey, graphOf } from "../../../views/flames/difference";
import { filtering, type Board } from "./board";
import { whenSeen } from "./seen";
import { source } from "./source";
import { button } from "./tools";

/**
 * GET /snapshots/{id}/flame: numbers are those of the frames' places, −1 where a frame stands for
 * none.
 */
type Answer = StackSet & { numbers: number[]; point: number };

const whats = {
  moment: "at the moment",
  peak: "at the peak",
  allocated: "allocated in view",
  held: "held in view",
  freed: "freed in view",
  since: "since a moment",
} as const;

/**
 * What the address says of the graph: words joined by ".", as peak.inverted.calls; since-1000
 * compares with point 1,000; of: names a function.
 */
export interface Choice {
  what: keyof typeof whats;
  since: number;
  how: How;
}

export function parsed(text: string): Choice {
  const [words = "", of = ""] = text.split(/\.of:(.*)/s),
    all = words.split("."),
    since = all.find((w) => /^since-\d+$/.test(w));
  const among = <T extends string>(of: Record<T, unknown>): T | undefined =>
    all.find((w): w is T => w in of);
  return {
    what: since
      ? "since"
      : (among({ moment: 0, peak: 0, allocated: 0, held: 0, freed: 0 }) ?? "moment"),
    since: since ? Number(since.slice(6)) : 0,
    how: {
      view: among(views) ?? "icicle",
      order: all.includes("calls") ? "calls" : "largest",
      native: all.includes("native"),
      of,
    },
  };
}

export function written({ what, since, how }: Choice): string {
  const words = [
    what === "since" ? `since-${since}` : what === "moment" ? "" : what,
    how.view === plain.view ? "" : how.view,
    how.order === plain.order ? "" : how.order,
    how.native ? "native" : "",
  ]
    .filter(Boolean)
    .join(".");
  return how.view === "sandwich" ? `${words}.of:${how.of}` : words;
}

const restMs = 120;

const graphOfOne = (a: Answer): Graph => ({
  title: a.title,
  frames: a.frames,
  root: grow(a, "bytes"),
  figure: bytes,
  counted: true,
  ...(a.rest_bytes ? { rest: `Stacks too small to draw have ${bytes(a.rest_bytes)} more.` } : {}),
});

const moment = (point: number): string =>
  point === 0 ? "before the first event" : `after event ${count(point - 1)}`;

/** What an answer is of, in words. */
function saidOf(a: Answer, what: Choice["what"], range: { from: number; to: number }): string {
  const sum = bytes(a.total_bytes),
    stretch = `the ${count(range.to - range.from)} events in view`;
  if (what === "allocated") return `${sum} allocated by ${stretch}, freed since or not`;
  if (what === "freed") return `${sum} freed by ${stretch}, by the calls that had allocated it`;
  const which =
    what === "peak" ? ", the peak" : what === "held" ? `, when ${stretch} held most` : "";
  return `${sum} held ${moment(a.point)}${which}`;
}

const tabGroup = { class: "switch", role: "group", "aria-label": "What the graph shows" };

/** The buttons for what the graph shows. */
const tabsOf = (
  board: Board,
  change: (to: Partial<Choice>) => void,
): { what: string; tab: HTMLElement }[] =>
  Object.entries(whats).map(([what, text]) => {
    const tab = button(
      text,
      () =>
        change(what === "since" ? { what, since: board.at() } : { what: what as Choice["what"] }),
      {
        class: "",
        title:
          what === "since"
            ? "Keeps the moment that is chosen now, and compares it with those you choose next"
            : "",
      },
    );
    return { what, tab };
  });

export function flamePanel(board: Board, mark: (name: string, value: string) => void): HTMLElement {
  const { app } = board,
    now = () => parsed(app.get().flame),
    change = (to: Partial<Choice>) => app.set({ flame: written({ ...now(), ...to }) });
  const how = (to: Partial<How>) => change({ how: { ...now().how, ...to } });
  let shown: { graph: Graph; numbers: number[] } | null = null,
    asked = "";
  const code = source(board, "flame"),
    graph = flame({
      change: how,
      picked: (frame) => code.show(shown?.numbers[frame] ?? -1),
      find: (search) => app.set({ search: app.get().search === search ? "" : search }),
    });
  const chosen = choices(() => now().how, how),
    title = h("p", { class: "hint", role: "status" }, "Asked for when it is in view."),
    key = changeKey();
  key.hidden = true;
  const tabs = tabsOf(board, change);
  const draw = () => {
    if (shown) graph.show(shown.graph, now().how);
  };
  const took = (next: typeof shown, text: string) => {
    shown = next;
    title.textContent = text;
    key.hidden = next?.graph.root.before === undefined;
    draw();
    mark("flame", asked);
  };
  const ask = () => {
    const { what, since } = now(),
      { q: _, ...filter } = board.filter(),
      at = board.at();
    const window = app.get().window ?? board.whole().events,
      range = { from: window[0], to: Math.min(window[1], board.whole().events[1]) };
    const path = (more: Record<string, string | number | undefined>) =>
      board.path("flame", { ...more, ...filter });
    const question =
      what === "moment" || what === "since" || what === "peak"
        ? path({ at: what === "peak" ? board.device().peak_at : at })
        : path({ ...range, of: what });
    if (asked === (asked = `${question} ${since}`)) return;
    board.ask<Answer>("flame", question, (a) => {
      if (what !== "since")
        return took({ graph: graphOfOne(a), numbers: a.numbers }, saidOf(a, what, range));
      board.ask<Answer>("flame", path({ at: since }), (before) =>
        took(
          { graph: { ...graphOf(before, a), title: "Difference of two moments" }, numbers: [] },
          `${bytes(before.total_bytes)} held ${moment(since)}, ${bytes(a.total_bytes)} ` +
            `${moment(at)}`,
        ),
      );
    });
  };
  const seen = whenSeen(board, restMs, ask);
  board.follow(["at", "window", "device", ...filtering], seen.again);
  board.follow(["flame"], () => {
    chosen.follow();
    for (const t of tabs) t.tab.setAttribute("aria-pressed", String(t.what === now().what));
    seen.again();
    draw();
  });
  board.follow(["search"], () => {
    const pattern = patternOf(app.get().search);
    graph.search(pattern && ((f) => pattern.test(calledBy(f))));
  }); // the server says what is wrong with one that is none
  const element = h(
    "div",
    { class: "flame-panel" },
    h("div", { class: "tools" }, h("span", tabGroup, ...tabs.map((t) => t.tab))),
    chosen.element,
    title,
    graph.element,
    key,
    code.element,
  );
  seen.watch(element);
  return element;
}
