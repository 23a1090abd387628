// Two curves of memory over each other, as a picture that can be saved. A moment and a stretch are
// chosen on it, and a table has the figures of both.

import { canvas, fitted, s } from "../../draw/svg";
import { theme } from "../../draw/theme";
import type { Along, Course, Courses } from "../../lib/bothcourses";
import { byteTick, bytes, count } from "../../lib/format";
import { moment, ticks } from "../../lib/scales";
import type { PageStore } from "../../state/page";
import type { Store } from "../../state/store";
import { between, figures } from "../../tracks/readings";
import { momentText, stretchText } from "../chosen";
import { badge, h, section, sideways } from "../dom";
import { savedPicture } from "../saved";

const tall = 270,
  left = 66,
  right = 14,
  foot = 52,
  head = 8,
  slack = 4;
const words = {
  time: "time since each began",
  step: "optimizer steps",
  event: "events of the allocator",
};
const inks = ["curve-7", "curve-0"] as const;

/**
 * The selection counts points of a trace, of which one is before the first event; an axis counts
 * events.
 */
const shifted = (along: Along) => (along === "event" ? 1 : 0);

/**
 * Both over each other, along the axis that is chosen, else the first that is possible. A moment of
 * one axis is none of another.
 */
export function bothCourses(
  all: Courses[],
  name: string,
  page: PageStore,
  view: Store<{ along: string }>,
): HTMLElement {
  const place = h("div", {}),
    box = h("div", { class: "switch", role: "group", "aria-label": "Along" }),
    now = () => all.find((c) => c.along === view.get().along) ?? all[0]!;
  const buttons = all.map((of) => {
    const button = h("button", { type: "button" }, `by ${of.along}`);
    button.addEventListener("click", () => {
      if (of !== now()) {
        page.set({ at: null, range: null });
        view.set({ along: of.along });
      }
    });
    return button;
  });
  let shown: Courses | null = null,
    follow = () => {};
  box.append(...buttons);
  view.follow(["along"], () => {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(all[i] === now())));
    if (shown === now()) return;
    shown = now();
    const made = course(shown, name, page);
    follow = made.follow;
    place.replaceChildren(made.element);
  });
  page.follow(["at", "range"], () => follow());
  return section(
    "bothcourses",
    "Both over each other",
    all.length > 1 && h("div", { class: "tools" }, box),
    place,
  );
}

function course(
  of: Courses,
  name: string,
  page: PageStore,
): { element: HTMLElement; follow(): void } {
  const { along } = of,
    shift = shifted(along),
    whole = ends(of),
    xs = [...new Set([...of.before.x, ...of.after.x])]
      .filter((x) => x >= whole[0])
      .sort((a, b) => a - b);
  const picture = savedPicture(
    () => `courses-${name}`,
    () => `${name}: memory by ${words[along]}`,
    (width) => drawn(of, width, chosen()),
  );
  const reading = h("p", { class: "reading", role: "status" }),
    table = sideways({ role: "region", "aria-label": "Figures of both" });
  const box = h(
    "div",
    {
      class: "both",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Memory of both over each other. The arrow keys choose a moment, " +
        "with shift a stretch; Home and End go to the ends, Escape takes the choice away.",
    },
    picture.element,
  );
  /** What is chosen, on the axis of the picture. */
  const chosen = () => {
    const { at, range } = page.get();
    return {
      at: at === null ? null : at - shift,
      range: range && ([range[0] - shift, range[1] - shift] as [number, number]),
    };
  };
  const choose = (at: number | null, range: [number, number] | null) => {
    const point = (x: number) => Math.round(x) + shift,
      [from, to] = range ? [point(Math.min(...range)), point(Math.max(...range))] : [0, 0];
    page.set({ at: at === null ? null : point(at), range: to > from ? [from, to] : null });
  };
  const say = (x: number | null) => {
    const at = x ?? chosen().at;
    reading.textContent =
      at === null
        ? "Click for a moment, drag for a stretch."
        : `${momentText(Math.round(at) + shift, along)}: ${[of.before, of.after]
            .map((c, i) => {
              const v = between(c.x, c.y, at);
              return `${i ? "after" : "before"} ${v === null ? "no reading" : bytes(v)}`;
            })
            .join(", ")}`;
  };
  const follow = () => {
    picture.redraw();
    say(null);
    const { at, range } = chosen();
    table.replaceChildren(figuresOf(of, at, range));
  };

  pointed(box, picture.element, whole, { chosen, choose, say });
  keyed(box, xs, { chosen, choose });
  follow();
  return { element: h("div", {}, box, reading, table), follow };
}

/** What can be chosen on the picture, on its axis. */
interface Choice {
  chosen(): { at: number | null; range: [number, number] | null };
  choose(at: number | null, range: [number, number] | null): void;
}

/** A click chooses a moment, a drag a stretch; say tells of the place under the pointer. */
function pointed(
  box: HTMLElement,
  picture: HTMLElement,
  whole: [number, number],
  { chosen, choose, say }: Choice & { say(x: number | null): void },
): void {
  const xAt = (e: PointerEvent): number => {
    const { left: begin, width } = box.querySelector("svg")!.getBoundingClientRect();
    return (
      whole[0] +
      Math.min(Math.max((e.clientX - begin - left) / Math.max(width - left - right, 1), 0), 1) *
        (whole[1] - whole[0])
    );
  };
  picture.addEventListener("pointermove", (e) => {
    if ((e.target as Element).closest("svg")) say(xAt(e));
  });
  picture.addEventListener("pointerleave", () => say(null));
  picture.addEventListener("pointerdown", (e) => {
    if (e.button !== 0 || !(e.target as Element).closest("svg")) return;
    const begun = xAt(e),
      from = e.clientX,
      band = s("rect", {
        y: head,
        height: tall - head - foot,
        fill: theme()("accent"),
        "fill-opacity": 0.15,
      }),
      over = new AbortController(),
      { signal } = over;
    const drag = (m: PointerEvent) => {
      const svg = box.querySelector("svg")!,
        { left: edge } = svg.getBoundingClientRect(),
        [a, b] = [from - edge, Math.min(Math.max(m.clientX - edge, left), svg.clientWidth - right)];
      band.setAttribute("x", String(Math.min(a, b)));
      band.setAttribute("width", String(Math.abs(b - a)));
      if (!band.isConnected) svg.append(band);
    };
    e.preventDefault(); // no text is marked meanwhile
    box.focus({ preventScroll: true });
    addEventListener("pointermove", drag, { signal });
    addEventListener(
      "pointercancel",
      () => {
        over.abort();
        band.remove();
      },
      { signal },
    );
    addEventListener(
      "pointerup",
      (m) => {
        over.abort();
        band.remove();
        if (Math.abs(m.clientX - from) < slack) choose(begun, chosen().range);
        else choose(chosen().at, [begun, xAt(m)]);
      },
      { signal },
    );
  });
}

/** The arrow keys choose a moment, with shift a stretch. */
function keyed(box: HTMLElement, xs: number[], { chosen, choose }: Choice): void {
  let anchor: number | null = null; // of a stretch that shift and the arrow keys grow
  box.addEventListener("keydown", (e) => {
    if (e.target !== box || e.ctrlKey || e.metaKey || e.altKey) return;
    const { at, range } = chosen(),
      stands = at ?? (range ? range[1] : null),
      near = stands === null ? -1 : nearest(xs, stands);
    const to =
      e.key === "ArrowRight"
        ? Math.min(near + 1, xs.length - 1)
        : e.key === "ArrowLeft"
          ? near < 0
            ? xs.length - 1
            : Math.max(near - 1, 0)
          : e.key === "Home"
            ? 0
            : e.key === "End"
              ? xs.length - 1
              : -1;
    if (e.key === "Escape" && (at !== null || range)) {
      choose(null, null);
      anchor = null;
      e.preventDefault();
      e.stopPropagation();
    }
    if (to < 0) return;
    e.preventDefault();
    e.stopPropagation();
    if (!e.shiftKey) {
      anchor = null;
      choose(xs[to]!, range);
      return;
    }
    anchor ??= stands ?? xs[0]!;
    choose(xs[to]!, [anchor, xs[to]!]);
  });
}

/** The number in an ascending list that is nearest to a value. */
const nearest = (xs: number[], wanted: number): number =>
  xs.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(xs[best]! - wanted) ? i : best), 0);

/** Both ends of the axis. */
function ends({ along, before, after }: Courses): [number, number] {
  const xs = [before, after].flatMap((c) => [c.x[0] ?? 0, c.x[c.x.length - 1] ?? 0]),
    from = along === "step" ? Math.min(...xs) : 0;
  return [from, Math.max(...xs, from + 1)];
}

const signed = (n: number) => (n === 0 ? "±0 B" : `${n < 0 ? "−" : "+"}${bytes(Math.abs(n))}`);

/**
 * Figures in whole bytes, so that they and their differences agree: between two readings a curve is
 * a straight line.
 */
const whole = <T extends object>(of: T): T =>
  Object.fromEntries(
    Object.entries(of).map(([name, v]) => [name, typeof v === "number" ? Math.round(v) : v]),
  ) as T;

/**
 * What each does in the stretch, else in all of it, and the difference. The readings of a report
 * hold the lowest and the highest of each part, so a mean is about.
 */
function figuresOf(of: Courses, at: number | null, range: [number, number] | null): HTMLElement {
  const shift = shifted(of.along),
    stretch = range ?? ends(of),
    both = [of.before, of.after].map((c) =>
      whole({ at: at === null ? null : between(c.x, c.y, at), ...figures(c, stretch) }),
    );
  const cell = (v: number | null | undefined, text: (v: number) => string = bytes) =>
    h(
      "td",
      v === null || v === undefined
        ? { class: "number absent" }
        : { class: "number", title: `${count(v)} bytes` },
      v === null || v === undefined ? "–" : text(v),
    );
  const row = (
    name: HTMLElement | string,
    f: (typeof both)[number],
    text?: (v: number) => string,
  ) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      cell(f.at, text),
      cell(f.low, text),
      cell(f.mean, (text && ((v) => `≈ ${text(v)}`)) || ((v) => `≈ ${bytes(v)}`)),
      cell(f.high, text),
      cell(change(f), signed),
    );
  const change = (f: { begin?: number | null; end?: number | null }) =>
    f.begin === undefined || f.begin === null || f.end === undefined || f.end === null
      ? undefined
      : f.end - f.begin;
  const less = (b?: number | null, a?: number | null) =>
    a === undefined || a === null || b === undefined || b === null ? undefined : b - a;
  const [p, q] = both as [(typeof both)[number], (typeof both)[number]],
    c = less(change(q), change(p));
  const difference = {
    at: less(q.at, p.at) ?? null,
    low: less(q.low, p.low),
    mean: less(q.mean, p.mean),
    high: less(q.high, p.high),
    ...(c === undefined ? {} : { begin: 0, end: c }),
  } as (typeof both)[number];
  return h(
    "table",
    { class: "both-figures" },
    h(
      "caption",
      {},
      range
        ? `In the stretch: ${stretchText([range[0] + shift, range[1] + shift], of.along)}`
        : "All of it",
    ),
    figureHead(),
    h(
      "tbody",
      {},
      row(whose(of.before, "before", inks[0]), p),
      row(whose(of.after, "after", inks[1]), q),
      row("difference", difference, signed),
    ),
  );
}

const figureHead = (): HTMLElement =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { scope: "col" }, "Curve"),
      ...["At the moment", "Lowest", "Mean", "Highest", "Change"].map((t) =>
        h("th", { scope: "col", class: "number" }, t),
      ),
    ),
  );

const whose = (of: Course, when: string, ink: string): HTMLElement =>
  h(
    "span",
    { title: of.title },
    h("i", { class: "swatch", style: `background:var(--${ink})` }),
    `${when} `,
    badge(of.label ?? ""),
  );

/** Where the figures of both lie in the picture. */
interface Plan {
  of: Courses;
  width: number;
  ends: [number, number];
  top: number; // bytes at the upper edge
  x(v: number): number;
  y(v: number): number;
}

function planOf(of: Courses, width: number): Plan {
  const [from, to] = ends(of),
    top = Math.max(1, highest(of.before), highest(of.after)) * 1.04;
  return {
    of,
    width,
    ends: [from, to],
    top,
    x: (v) => left + ((v - from) / (to - from || 1)) * (width - left - right),
    y: (v) => head + (1 - v / top) * (tall - head - foot),
  };
}

const highest = (c: Course): number => c.y.reduce((n, v) => Math.max(n, v), 0);

function drawn(
  of: Courses,
  width: number,
  { at, range }: { at: number | null; range: [number, number] | null },
): SVGSVGElement {
  const { along, before, after } = of,
    plan = planOf(of, width),
    [from, to] = plan.ends;
  const svg = canvas(
    width,
    tall,
    `${before.title} before, at most ${bytes(highest(before))}, ` +
      `and after, at most ${bytes(highest(after))}, ` +
      `by ${words[along]}`,
  );
  svg.append(
    // the pointer meets the picture everywhere
    s("rect", { x: 0, y: 0, width, height: tall, fill: "transparent" }),
    ...grid(plan),
    ...(range ? [stretch(plan, range)] : []),
    ...axisOf(plan),
    ...curves(plan),
    ...(at !== null && at >= from && at <= to ? momentOf(plan, at) : []),
    ...legend(plan),
  );
  return svg;
}

function grid({ width, top, y }: Plan): SVGElement[] {
  const colour = theme();
  return ticks(top, "bytes", 5).flatMap((t) => [
    s("line", { x1: left, x2: width - right, y1: y(t), y2: y(t), stroke: colour("grid") }),
    s(
      "text",
      { x: left - 8, y: y(t) + 4, fill: colour("muted"), "font-size": 11, "text-anchor": "end" },
      byteTick(t),
    ),
  ]);
}

function stretch({ width, x }: Plan, range: [number, number]): SVGElement {
  const within = (v: number) => Math.min(Math.max(x(v), left), width - right);
  return s("rect", {
    class: "stretch",
    x: within(range[0]),
    y: head,
    width: Math.max(within(range[1]) - within(range[0]), 1),
    height: tall - head - foot,
    fill: theme()("accent"),
    "fill-opacity": 0.15,
  });
}

/** The numbers below, and what they count. */
function axisOf({ of: { along }, width, ends: [from, to], x }: Plan): SVGElement[] {
  const fill = theme()("muted"),
    scale = along === "time" ? 1e9 : 1;
  const steps = ticks(to - from, along === "time" ? "ns" : "count", Math.max(2, width / 150)).map(
      (t) => t / scale,
    ),
    apart = (steps[1] ?? 1) - (steps[0] ?? 0);
  return [
    ...steps.map((t) =>
      s(
        "text",
        { x: x(from + t * scale), y: tall - 36, fill, "font-size": 11, "text-anchor": "middle" },
        along === "time" ? moment(t, apart) : count(from + t),
      ),
    ),
    s(
      "text",
      { x: width - right, y: tall - 22, fill, "font-size": 11, "text-anchor": "end" },
      words[along],
    ),
  ];
}

function curves({ of, x, y }: Plan): SVGElement[] {
  const colour = theme();
  return [of.before, of.after].map((c, i) =>
    s("path", {
      d: c.x.map((v, k) => `${k ? "L" : "M"}${x(v).toFixed(1)} ${y(c.y[k]!).toFixed(1)}`).join(""),
      fill: "none",
      stroke: colour(inks[i]!),
      "stroke-width": 1.75,
      "stroke-linejoin": "round",
      ...(i ? {} : { "stroke-dasharray": "6 3" }),
    }),
  );
}

/** The chosen moment, and what each curve has there. */
function momentOf({ of, x, y }: Plan, at: number): SVGElement[] {
  const colour = theme();
  const line = s("line", {
    class: "moment",
    x1: x(at),
    x2: x(at),
    y1: head,
    y2: tall - foot,
    stroke: colour("accent"),
    "stroke-width": 1.5,
  });
  const points = [of.before, of.after].flatMap((c, i) => {
    const v = between(c.x, c.y, at);
    return v === null
      ? []
      : [
          s("circle", {
            cx: x(at),
            cy: y(v),
            r: 3.5,
            fill: colour(inks[i]!),
            stroke: colour("panel"),
            "stroke-width": 1.5,
          }),
        ];
  });
  return [line, ...points];
}

function legend({ of, width }: Plan): SVGElement[] {
  const colour = theme();
  return [of.before, of.after].flatMap((c, i) => {
    const at = i ? width / 2 : width < 560 ? 4 : left;
    return [
      s("line", {
        x1: at,
        x2: at + 18,
        y1: tall - 8,
        y2: tall - 8,
        stroke: colour(inks[i]!),
        "stroke-width": 2,
        ...(i ? {} : { "stroke-dasharray": "6 3" }),
      }),
      fitted(`${i ? "after" : "before"}: ${c.title}`, width / 2 - 40, {
        x: at + 24,
        y: tall - 4,
        fill: colour("text"),
        "font-size": 11,
      }),
    ];
  });
}
