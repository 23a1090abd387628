import type { Report, StackSet } from "../../api";
import { bytes, duration, place, quantity } from "../../lib/format";
import { figures, grow } from "../../lib/icicle";
import { patternOf } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { badge, h, section, type Child } from "../dom";
import { calledBy, choices, flame, plain, type Graph, type How } from "./flame";

const restMs = 120;

/** Device memory by call stack: the outermost call at the top, as wide as what it holds. */
export function flames(report: Report, page: PageStore): HTMLElement | null {
  const sets = setsOf(report, "device");
  return sets.length
    ? section(
        "flames",
        "Who holds the device's memory",
        ...oneAtATime(
          sets.map((s) => [`device ${s.device_number}`, s.file, () => picture(s, page)]),
        ),
      )
    : null;
}

/**
 * What the heap of a process held at a time, in ns since the run began; with from, only what it
 * took after that.
 */
export type HeapAt = (process: number, at: number, from: number | undefined) => Promise<StackSet>;

/**
 * What a page gives that draws its panels again: how each picture was looked at, by its process,
 * and who answers for a moment.
 */
export interface Again {
  heapAt: HeapAt;
  looks: Map<number, Look>;
}
interface Look {
  how: How;
  measure: string | undefined;
  atMoment: boolean;
  chose: Chosen | null; // shown until the answer for the panel that is drawn anew is there
}
/** What was held at a moment that was chosen, or is kept of a stretch. */
interface Chosen {
  set: StackSet;
  said: string;
  name: string;
}

/**
 * The heaps of processes by call stack: at their highest, at the end, what was freed again, and
 * where it can be asked for at a moment that is chosen.
 */
export function heapFlames(report: Report, page: PageStore, again?: Again): HTMLElement | null {
  const sets = setsOf(report, "heap");
  return sets.length
    ? section(
        "heap-flames",
        "Who holds the host's memory",
        ...oneAtATime(
          sets.map((s) => [s.of ?? s.title, undefined, () => picture(s, page, again)]),
          "Process",
        ),
      )
    : null;
}

const setsOf = (report: Report, name: string) =>
  (report.stacks ?? []).filter(
    (s) => s.name === name && (s.total_bytes > 0 || s.measures?.some((m) => m.total > 0)),
  );

function picture(set: StackSet, page: PageStore, again?: Again): HTMLElement {
  const measures = set.measures?.filter((m) => m.total > 0) ?? [];
  const title = h("span", {});
  const before = again?.looks.get(set.process ?? 0);
  let measure = measures.find((m) => m.name === before?.measure) ?? measures[0],
    how = before?.how ?? plain,
    chose = before?.chose ?? null,
    atMoment = chose !== null && before!.atMoment,
    first = before !== undefined;
  const draw = () => {
    again?.looks.set(set.process ?? 0, { how, measure: measure?.name, atMoment, chose });
    for (const [name, button] of tabs)
      button.setAttribute("aria-pressed", String(name === (atMoment ? "moment" : measure?.name)));
    if (atMoment && chose) {
      title.textContent = chose.said;
      return graph.show(momentGraph(chose.set, chose.said), how);
    }
    graph.show(graphOf(set, measure, measure === measures[0]), how);
    title.textContent =
      set.name === "heap" && measure
        ? `${quantity(measure.total, measure.unit)}: ${measure.title}`
        : set.title;
    chosen.follow();
  };
  const changed = (to: Partial<How>) => {
    how = { ...how, ...to };
    draw();
  };
  const tabs = measures.map((m) =>
    tab(m.name, (set.name === "heap" ? shortOfHeaps : short)[m.name] ?? m.name, () => {
      measure = m;
      atMoment = false;
      draw();
    }),
  );
  const moment = tab("moment", chose?.name ?? "", () => {
    atMoment = true;
    draw();
  })[1];
  moment.hidden = chose === null;
  tabs.push(["moment", moment]);
  const none = () => {
    moment.hidden = true;
    chose = null;
    if (!atMoment) return;
    atMoment = false;
    draw();
  };
  const took = (got: StackSet, range: [number, number] | null) => {
    withSources(got, set);
    chose = chosenOf(got, range);
    moment.textContent = chose.name;
    moment.hidden = false;
    atMoment = !first || before!.atMoment; // drawn again, it stays what it was
    first = false;
    draw();
  };
  const ask = asker((at, since) => again!.heapAt(set.process!, at, since), { none, took });
  const graph = flame({
      change: changed,
      find: (search) => page.set({ search: page.get().search === search ? "" : search }),
    }),
    chosen = choices(() => how, changed, ["order"]);
  draw();
  if (again) page.follow(["at", "range"], ({ at, range }) => ask(at, range));
  page.follow(["line", "search"], ({ line, search }) => {
    const pattern = patternOf(search);
    graph.search(
      line ? (f) => place(f.file, f.line) === line : pattern && ((f) => pattern.test(calledBy(f))),
    );
  });
  const heading = [title, set.name === "heap" && badge(set.label)];
  return h(
    "figure",
    {},
    h("figcaption", {}, ...heading, tabs.length > 2 && tabBox(tabs.map(([, button]) => button))),
    chosen.element,
    graph.element,
  );
}

const tab = (name: string, text: string, then: () => void): [string, HTMLButtonElement] => {
  const button = h("button", { type: "button" }, text);
  button.addEventListener("click", then);
  return [name, button];
};

/** Gives the user's lines of a moment their text, which the report of the run has. */
function withSources(got: StackSet, report: StackSet): void {
  const sources = new Map(report.frames.map((f) => [place(f.file, f.line) + f.file, f.source]));
  for (const f of got.frames) {
    const text = sources.get(place(f.file, f.line) + f.file);
    if (f.user && text) f.source = text;
  }
}

/** Asks for the heap at a moment or of a stretch, once the choice has rested. */
function asker(
  heapAt: (at: number, since: number | undefined) => Promise<StackSet>,
  { none, took }: { none(): void; took(got: StackSet, range: [number, number] | null): void },
): (at: number | null, range: [number, number] | null) => void {
  let waiting = 0,
    asked = 0;
  return (at, range) => {
    const mine = ++asked;
    clearTimeout(waiting);
    if (at === null && !range) return none();
    const to = Math.round(range ? range[1] : (at ?? 0)),
      since = range ? Math.round(range[0]) : undefined;
    waiting = window.setTimeout(() => {
      void heapAt(to, since).then(
        (got) => {
          if (mine === asked) took(got, range);
        },
        () => {
          if (mine === asked) none();
        },
      );
    }, restMs);
  };
}

const tabBox = (tabs: HTMLElement[]): HTMLElement =>
  h("span", { class: "switch", role: "group", "aria-label": "Measure" }, ...tabs);

const chosenOf = (set: StackSet, range: [number, number] | null): Chosen => ({
  set,
  said: saidOf(set, range),
  name: range ? "kept of the stretch" : "at the moment",
});

/** What was held at a moment, or is kept of a stretch, in words. */
function saidOf(got: StackSet, range: [number, number] | null): string {
  const read =
    got.time_ns === undefined ? "before the first reading" : `at ${duration(got.time_ns)}`;
  return range
    ? `${bytes(got.total_bytes)}: allocated after ${duration(range[0])}, still held ${read}`
    : `${bytes(got.total_bytes)}: bytes held ${read}`;
}

const momentGraph = (at: StackSet, title: string): Graph => ({
  title,
  frames: at.frames,
  root: grow(at, "bytes"),
  figure: bytes,
  ...(at.rest_bytes ? { rest: `Stacks too small to draw have ${bytes(at.rest_bytes)} more.` } : {}),
});

/** What a figure of a measure is of, behind its number. */
const behind: Record<string, string> = {
  "bytes-time": " on average",
  count: " allocations",
  churn: " freed again",
};

/** The stacks by a measure; main says that it is the first of them. */
const graphOf = (
  set: StackSet,
  of: NonNullable<StackSet["measures"]>[number] | undefined,
  main: boolean,
): Graph => ({
  title: set.title,
  frames: set.frames,
  root: grow(set, figures[of?.name ?? ""] ?? "bytes"),
  figure: (n) => quantity(n, of?.unit ?? "bytes") + (behind[of?.name ?? ""] ?? ""),
  counted: set.name === "device" && main,
  ...(of?.rest
    ? { rest: `Stacks too small to draw have ${quantity(of.rest, of.unit)} more.` }
    : {}),
});

const short: Record<string, string> = {
  bytes: "bytes held",
  "bytes-time": "bytes × time",
  count: "allocations",
  churn: "churn",
};
const shortOfHeaps: Record<string, string> = {
  bytes: "held at the peak",
  end: "held at the end",
  churn: "freed again",
};

/**
 * One picture of several devices, with a button for each, which names the file where there are
 * several. A picture is drawn when it is first looked at.
 */
export function oneAtATime(
  pictures: [device: string, file: string | undefined, draw: () => HTMLElement][],
  what = "Device",
): Child[] {
  if (pictures.length < 2) return pictures.map(([, , draw]) => draw());
  const drawn: HTMLElement[] = [],
    place = h("div", {}),
    files = new Set(pictures.map(([, file]) => file)).size;
  const show = (i: number) => place.replaceChildren((drawn[i] ??= pictures[i]![2]()));
  show(0);
  return [
    h(
      "p",
      { class: "tabs" },
      switcher(
        what,
        pictures.map(([device, file], i): [string, () => void] => [
          files > 1 ? `${device} of ${file}` : device,
          () => show(i),
        ]),
      ),
    ),
    place,
  ];
}

/** Buttons of which one is on. */
export function switcher(label: string, choices: [title: string, then: () => void][]): HTMLElement {
  const buttons = choices.map(([title, then], i) => {
    const button = h("button", { type: "button", "aria-pressed": String(i === 0) }, title);
    button.addEventListener("click", () => {
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      then();
    });
    return button;
  });
  return h(
    "span",
    { class: "switch", role: "group", "aria-label": label },
    ...(buttons as Child[]),
  );
}
