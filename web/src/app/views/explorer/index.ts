// The explorer of a snapshot: its blocks stacked event by event, the block that is chosen, and the
// segments at one event.
//
//	state of the app: window, bytes, at, block, line, category, module, search, colour, only, device
//	   └──▶ board ──▶ all panels, which ask the server for what they show

import type { Block, Labels, OpenedDevice } from "../../../api";
import "./explorer.css";
import { h, section } from "../../../views/dom";
import { get } from "../../api";
import { failure, givenUp } from "../../parts";
import type { KeyGroup } from "../../frame/keys";
import type { Command } from "../../frame/palette";
import type { App } from "../../state";
import type { Shown } from "../page";
import { asker, pathOf, type Board, type Panel } from "./board";
import { cachedPanel } from "./cached";
import { inks, bys, type By } from "./colours";
import { eventList } from "./events";
import { facts } from "./facts";
import { flamePanel } from "./flames";
import { segmentMap } from "./segments";
import { stacked, type Stacked } from "./stacked";
import { tools } from "./tools";

/**
 * The sections of a snapshot's page; they ask for what they show, and tell when the first picture
 * is there or nothing is to be drawn.
 */
export function explorer(app: App, id: string, drawn: () => void): Shown {
  const closing = new AbortController(),
    body = h("div", { class: "explorer" }),
    below = h("div", { class: "explorer-below", hidden: "" });
  let told = false,
    actions: Actions | null = null;
  const then = (does: (a: Actions) => void) => () => {
    if (actions) does(actions);
  };
  const once = () => {
    if (!told && !closing.signal.aborted) {
      told = true;
      below.hidden = false;
      drawn();
    }
  };
  const ask = () =>
    void get<{ devices: OpenedDevice[] | null }>(
      `/snapshots/${encodeURIComponent(id)}`,
      closing.signal,
    ).then(
      ({ devices }) => {
        if (devices?.some((d) => d.events > 0))
          actions = panels(app, id, devices, body, below, closing.signal, once);
        else {
          body.replaceChildren(
            h(
              "p",
              { class: "hint" },
              "This snapshot has no trace of events, so there are no blocks over time to show.",
            ),
          );
          once();
        }
      },
      (e: unknown) => {
        if (!givenUp(e)) {
          body.replaceChildren(failure(e, ask));
          once();
        }
      },
    );
  ask();
  return {
    element: h("div", {}, section("explorer", "Every block, event by event", body), below),
    keys: keysOf(app, then),
    commands: () => commandsOf(then),
    close: () => closing.abort(),
  };
}

/** The field of the selection that holds one value of what colours tell apart. */
const fieldOf = (by: By) =>
  by === "site" ? "line" : by === "category" || by === "module" ? by : "only";

/**
 * What the whole picture reaches up to: what was reserved too, unless the blocks would have too
 * little of it.
 */
const tallest = (d: OpenedDevice) => {
  const reserved = d.peak_reserved_bytes ?? 0;
  return reserved > 1.5 * d.peak_bytes ? d.peak_bytes : Math.max(d.peak_bytes, reserved);
};

const mostKept = 500; // facts of blocks
const zoomStep = 0.5,
  panShare = 0.2;

/** Panels below the picture, one file each. Add yours here. */
const lower: { id: string; title: string; panel: Panel }[] = [
  { id: "explorer-cached", title: "What was cached", panel: cachedPanel },
  {
    id: "explorer-flames",
    title: "Call stacks of the moment, the peak or the stretch in view",
    panel: flamePanel,
  },
];

function boardOf(
  app: App,
  id: string,
  devices: OpenedDevice[],
  closed: AbortSignal,
  problem: HTMLElement,
): Board {
  const highest = devices.reduce((a, b) => (b.peak_bytes > a.peak_bytes ? b : a));
  const device = () => devices.find((d) => String(d.device) === app.get().device) ?? highest;
  const whole: Board["whole"] = () => ({
    events: [0, device().events + 1],
    bytes: [0, Math.ceil(Math.max(tallest(device()) * 1.03, 1))],
  });
  const labels: Labels = { sites: [], categories: [], modules: [], streams: [] },
    blocks = new Map<number, Block>();
  const by = (): By => (app.get().colour in bys ? (app.get().colour as By) : "site"),
    ask = asker(closed, problem);
  let of = device().device;
  const board: Board = {
    app,
    closed,
    devices,
    device,
    whole,
    labels,
    ask,
    colours: inks(by, labels, () => whole().events[1], closed),
    at: () => Math.min(app.get().at ?? device().peak_at ?? device().events, device().events),
    path: (rest, asked = {}) => pathOf(id, rest, { device: device().device, ...asked }),
    filter: () => filterOf(app, by()),
    alone: () => app.get()[fieldOf(by())],
    choose: (value) => app.set({ [fieldOf(by())]: value }),
    known: () => ({
      sites: labels.sites.length,
      categories: labels.categories.length,
      modules: labels.modules.length,
    }),
    learn: (more, known) => {
      for (const name of ["sites", "categories", "modules"] as const)
        more[name].forEach((label, i) => {
          labels[name][known[name] + i] = label;
        });
      labels.streams = more.streams;
    },
    block: (n, then, what) => {
      const before = blocks.get(n);
      if (before) then(before);
      else
        void ask<Block>(what, board.path("block", { n, at: board.at() }), (b) => {
          if (blocks.size > mostKept) blocks.clear();
          blocks.set(n, b);
          then(b);
        });
    },
    ...hovers(),
    follow: (fields, then) => {
      app.follow(fields, () => {
        if (!closed.aborted) then();
      });
    },
    goTo: (point) => app.set({ at: Math.min(Math.max(point, 0), device().events) }),
  };
  app.follow(["device"], () => {
    if (of === device().device) return;
    of = device().device;
    Object.assign(labels, { sites: [], categories: [], modules: [], streams: [] });
    blocks.clear();
  });
  return board;
}

/** Which blocks are looked at, as the server is asked for them. */
function filterOf(app: App, by: By): ReturnType<Board["filter"]> {
  const { search, line, category, module, only } = app.get();
  return {
    ...(search ? { q: search } : {}),
    ...(line ? { line } : {}),
    ...(category ? { category } : {}),
    ...(module ? { module } : {}),
    ...(only ? { by, only } : {}),
  };
}

/** The block under the pointer, in whichever panel that is. */
function hovers(): Pick<Board, "hover" | "hovered"> {
  const hovering: ((n: number | null) => void)[] = [];
  let under: number | null = null;
  return {
    hover: (n) => {
      if (n === under) return;
      under = n;
      for (const then of hovering) then(n);
    },
    hovered: (then) => {
      hovering.push(then);
    },
  };
}

function panels(
  app: App,
  id: string,
  devices: OpenedDevice[],
  body: HTMLElement,
  below: HTMLElement,
  closed: AbortSignal,
  drawn: () => void,
): Actions {
  const problem = h("div", {}),
    side = h("aside", { "aria-label": "The selected block" }),
    board = boardOf(app, id, devices, closed, problem);
  const mark = (name: string, value: string) => {
    body.dataset[name] = value;
  };
  const blocks = stacked(board, mark, drawn),
    step = (by: number) => board.goTo(board.at() + by);
  let resting = 0;
  const chosen = () => {
    const n = app.get().block;
    if (n === null)
      side.replaceChildren(
        h(
          "p",
          { class: "hint" },
          "Click a block for its facts. The wheel zooms, with shift in bytes; drag to pan; " +
            "F shows everything; ← and → step by one event; ↑ and ↓ go from block to block of " +
            "the picture that has the focus.",
        ),
      );
    else
      board.ask<Block>("chosen", board.path("block", { n, at: board.at() }), (b) => {
        if (app.get().block === n) side.replaceChildren(facts(board, b));
      });
  };
  board.follow(["block", "device"], chosen);
  let first = true;
  board.follow(["at"], () => {
    // what is alive at the moment is another; not at each step of a key that is held
    clearTimeout(resting);
    if (!first)
      resting = window.setTimeout(() => {
        if (!closed.aborted && app.get().block !== null) chosen();
      }, 200);
    first = false;
  });
  const map = segmentMap(board, mark),
    events = eventList(board, mark);
  body.replaceChildren(
    tools(board, blocks, step),
    problem,
    h("div", { class: "explorer-main" }, blocks.element, side),
    h("div", { class: "explorer-moment" }, map, events.element),
  );
  below.replaceChildren(
    ...lower.map(({ id, title, panel }) => section(id, title, panel(board, mark))),
  );
  return {
    step,
    ...blocks,
    peak: events.peak,
    next: events.next,
    colour: (by) => app.set({ colour: by === "site" ? "" : by, only: "" }),
    search: () => body.querySelector<HTMLInputElement>("input[type=search]")?.focus(),
  };
}

/** What keys and the palette do once there is something to see. */
interface Actions extends Omit<Stacked, "element"> {
  step(by: number): void;
  peak(): void;
  next(kind: string, back?: boolean): void;
  colour(by: By): void;
  search(): void;
}

function keysOf(app: App, then: (does: (a: Actions) => void) => () => void): KeyGroup[] {
  const key = (keys: string[], does: string, run: (a: Actions) => void) => ({
    keys,
    does,
    run: then(run),
  });
  return [
    {
      title: "Explorer",
      keys: [
        key(["ArrowLeft"], "one event back", (a) => a.step(-1)),
        key(["ArrowRight"], "one event on", (a) => a.step(1)),
        key(["p"], "to the peak", (a) => a.peak()),
        key(["o"], "to where memory runs out next", (a) => a.next("oom")),
        key(["n"], "to the next segment that is allocated", (a) => a.next("segment_alloc")),
        key(["b"], "to the last one before", (a) => a.next("segment_alloc", true)),
        key(["w", "+", "="], "zoom in, at the moment", (a) => a.zoom(zoomStep)),
        key(["s", "-"], "zoom out", (a) => a.zoom(1 / zoomStep)),
        key(["a"], "pan back", (a) => a.pan(-panShare)),
        key(["d"], "pan on", (a) => a.pan(panShare)),
        key(["W"], "zoom in, in bytes", (a) => a.tall(zoomStep)),
        key(["S"], "zoom out, in bytes", (a) => a.tall(1 / zoomStep)),
        key(["A"], "down, in bytes", (a) => a.lift(-panShare)),
        key(["D"], "up, in bytes", (a) => a.lift(panShare)),
        key(["f", "F"], "show everything", (a) => a.fit()),
        {
          keys: ["ArrowUp", "ArrowDown"],
          does:
            "with the picture focused: to the block above or below at this moment, " +
            "of those drawn one by one",
        },
        key(["c"], "colours by the next property", (a) => {
          const all = Object.keys(bys) as By[];
          a.colour(all[(all.indexOf((app.get().colour || "site") as By) + 1) % all.length]!);
        }),
        {
          keys: ["Enter"],
          does: "select that block; in the list of events, the block of the event",
        },
        key(["/"], "search", (a) => a.search()),
        key(["Escape"], "choose no block", () => app.set({ block: null })),
      ],
    },
  ];
}

const commandsOf = (then: (does: (a: Actions) => void) => () => void): Command[] => [
  ...(
    [
      ["To the peak", "p", (a) => a.peak()],
      ["To where memory runs out next", "o", (a) => a.next("oom")],
      ["To the next segment that is allocated", "n", (a) => a.next("segment_alloc")],
      ["Show everything", "f", (a) => a.fit()],
    ] as [string, string, (a: Actions) => void][]
  ).map(([title, key, run]): Command => ({ title, kind: "action", key, run: then(run) })),
  ...(Object.entries(bys) as [By, string][]).map(([by, title]): Command => ({
    title: `Colours by ${title}`,
    kind: "action",
    run: then((a) => a.colour(by)),
  })),
];
