// A chart's section: heading, what it shows in two sentences, its choices, the picture, and the
// picture as a file. Its marks stand for cells: they are read by pointing or with the arrow keys,
// and chosen by a click or Enter.

import { alone, fileName, savePNG, saveSVG } from "../../draw/save";
import { filtered, type Page, type View } from "../state";
import type { Cell, Model } from "../model";
import { whileShown } from "../../draw/shown";
import { theme } from "../../draw/theme";
import { h, section, type Child } from "../../views/dom";

/** What a mark stands for. */
export interface Mark {
  title: string;
  lines: string[];
  cells: Cell[];
  x: number;
  y: number;
}

export interface Drawn {
  svg: SVGSVGElement;
  marks: Map<SVGElement, Mark>;
  note?: string;
}

export interface Chart {
  id: string;
  title: string;
  tools: Child[];
  follow: (keyof View)[];
  caption(view: View): string; // what is seen now
  draw(width: number, view: View): Drawn | string; // a sentence where there is nothing to draw
}

const always: (keyof View)[] = ["only", "state", "figure", "statistic"];

export function picture(model: Model, page: Page, chart: Chart): HTMLElement {
  const box = h("div", { class: "picture" }),
    tip = h("div", { class: "tip-box", role: "status", hidden: "" }),
    note = h("p", { class: "hint note" });
  const caption = h("p", { class: "caption" });
  let drawn: Drawn | null = null,
    width = 0;
  const redraw = () => {
    const at =
      drawn && document.activeElement instanceof SVGElement
        ? drawn.marks.get(document.activeElement)?.cells[0]?.key
        : undefined;
    const focused = box.contains(document.activeElement);
    width = box.clientWidth;
    if (width === 0) return;
    const view = page.get(),
      found = chart.draw(Math.max(width, 280), view);
    drawn = typeof found === "string" ? null : found;
    tip.hidden = true;
    box.replaceChildren(
      typeof found === "string" ? h("p", { class: "nothing" }, found) : found.svg,
    );
    caption.textContent = drawn ? chart.caption(view) : "";
    note.textContent = drawn?.note ?? "";
    note.hidden = !drawn?.note;
    for (const b of saves) b.hidden = !drawn;
    if (!drawn) return;
    for (const [element, mark] of drawn.marks) dress(element, mark);
    const marks = [...drawn.marks.keys()],
      again =
        marks.find((m) => at && drawn!.marks.get(m)!.cells.some((c) => c.key === at)) ?? marks[0];
    again?.setAttribute("tabindex", "0");
    if (focused && at) again?.focus({ preventScroll: true });
    choose(drawn, view.cell);
  };
  const soon = together(redraw);
  const saves = (["SVG", "PNG"] as const).map((kind) =>
    saver(model, page, chart, kind, () => drawn),
  );
  pointed(box, tip, () => drawn, page);
  queueMicrotask(() => {
    page.follow([...always, ...chart.follow], soon);
    page.follow(["cell"], ({ cell }) => {
      if (drawn) choose(drawn, cell);
    });
    whileShown(box, "hightide:theme", soon);
    whileShown(box, "beforeprint", redraw);
    new ResizeObserver(() => {
      if (box.clientWidth !== width) soon();
    }).observe(box);
    redraw();
  });
  return panel(
    chart.id,
    chart.title,
    saves,
    chart.tools.some(Boolean) && h("div", { class: "tools" }, ...chart.tools),
    caption,
    h("div", { class: "stage" }, h("div", { class: "sideways" }, box), tip),
    note,
  );
}

/** Several changes, one picture. */
function together(redraw: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      redraw();
    });
  };
}

/** A button that saves what is drawn then. */
function saver(
  model: Model,
  page: Page,
  chart: Chart,
  kind: "SVG" | "PNG",
  now: () => Drawn | null,
): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "plain", title: `Save this chart as ${kind}` },
    kind,
  );
  button.addEventListener("click", () => {
    const drawn = now();
    if (!drawn) return;
    const view = page.get(),
      text = alone(
        drawn.svg,
        `${model.packed.name ? `${model.packed.name}: ` : ""}${chart.caption(view)}`,
        [filtered(model, view), drawn.note ?? ""].filter(Boolean),
      );
    const name = fileName(model.packed.name, chart.id, view.figure);
    if (kind === "SVG") saveSVG(text, name);
    else void savePNG(text, name);
  });
  return button;
}

/** A section with buttons beside its title. */
function panel(
  id: string,
  title: string,
  buttons: HTMLElement[],
  ...children: Child[]
): HTMLElement {
  const whole = section(id, title, ...children),
    heading = whole.firstElementChild!;
  whole.prepend(h("div", { class: "head" }, heading, h("span", { class: "saves" }, ...buttons)));
  return whole;
}

function dress(element: SVGElement, mark: Mark): void {
  element.setAttribute("tabindex", "-1");
  element.setAttribute("role", "button");
  element.setAttribute("class", "mark");
  element.setAttribute("aria-label", [mark.title, ...mark.lines].join(", "));
}

/** Marks of the chosen cell get an edge. */
function choose({ marks }: Drawn, key: string): void {
  const ink = theme()("text");
  for (const [element, mark] of marks) {
    const on = key !== "" && mark.cells.some((c) => c.key === key);
    element.setAttribute("aria-pressed", String(on));
    if (on === element.hasAttribute("data-on")) continue;
    element.toggleAttribute("data-on", on);
    const edge = element.querySelector<SVGElement>("[data-edge]") ?? element;
    if (on) {
      edge.setAttribute("stroke", ink);
      edge.setAttribute("stroke-width", "2.5");
    } else {
      edge.removeAttribute("stroke");
      edge.removeAttribute("stroke-width");
    }
  }
}

const ways: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function pointed(box: HTMLElement, tip: HTMLElement, drawn: () => Drawn | null, page: Page): void {
  const of = (e: Event): [SVGElement, Mark] | null => {
    const element = e.target instanceof Element ? e.target.closest<SVGElement>(".mark") : null,
      mark = element && drawn()?.marks.get(element);
    return element && mark ? [element, mark] : null;
  };
  const tell = (found: [SVGElement, Mark] | null) => {
    tip.hidden = !found;
    if (!found) return;
    const [element, mark] = found,
      stage = tip.parentElement!.getBoundingClientRect(),
      at = element.getBoundingClientRect();
    tip.replaceChildren(h("b", {}, mark.title), ...mark.lines.map((l) => h("span", {}, l)));
    const left = at.left + at.width / 2 - stage.left - tip.offsetWidth / 2,
      above = at.top - stage.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(0, Math.min(left, stage.width - tip.offsetWidth))}px`;
    tip.style.top = `${above > -60 ? above : at.bottom - stage.top + 8}px`;
  };
  const take = (mark: Mark) => {
    const now = page.get().cell,
      i = mark.cells.findIndex((c) => c.key === now);
    // of a mean, one cell after the other
    page.set({ cell: mark.cells[(i + 1) % mark.cells.length]!.key });
    document.getElementById("cell")?.focus({ preventScroll: true });
  };
  box.addEventListener("pointerover", (e) => tell(of(e)));
  box.addEventListener("pointerleave", () => tell(null));
  box.addEventListener("focusin", (e) => tell(of(e)));
  box.addEventListener("focusout", () => tell(null));
  box.addEventListener("click", (e) => {
    const found = of(e);
    if (!found) return;
    for (const other of drawn()!.marks.keys())
      other.setAttribute("tabindex", other === found[0] ? "0" : "-1");
    take(found[1]);
  });
  box.addEventListener("keydown", (e) => {
    const found = of(e),
      way = ways[e.key],
      all = drawn()?.marks;
    if (!found || !all || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      take(found[1]);
    }
    if (!way) return;
    e.preventDefault();
    const next = nearest(found[1], [...all.entries()], way);
    if (!next) return;
    found[0].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

/** The nearest mark in a direction; what lies aside counts thrice. */
export function nearest<T>(
  from: { x: number; y: number },
  all: [T, { x: number; y: number }][],
  [dx, dy]: [number, number],
): T | null {
  let best: T | null = null,
    least = Infinity;
  for (const [element, mark] of all) {
    const ahead = (mark.x - from.x) * dx + (mark.y - from.y) * dy,
      aside = Math.abs((mark.x - from.x) * dy) + Math.abs((mark.y - from.y) * dx);
    const far = ahead + 3 * aside;
    if (ahead > 0.5 && far < least) {
      best = element;
      least = far;
    }
  }
  return best;
}

/** A choice among a few: a label and a list that follow a field of the view. */
export function select<K extends keyof View>(
  page: Page,
  field: K,
  label: string,
  choices: () => [value: string, title: string][],
): HTMLElement | null {
  const some = choices();
  if (some.length < 2) return null;
  const list = h(
    "select",
    { "aria-label": label },
    ...some.map(([value, title]) => h("option", { value }, title)),
  );
  list.addEventListener("change", () =>
    page.set({ [field]: list.value } as unknown as Partial<View>),
  );
  page.follow([field], (view) => {
    list.value = String(view[field]);
  });
  return h("label", { class: "choose" }, `${label} `, list);
}

/** A choice that is on or off. */
export function toggle(page: Page, field: "free" | "far", label: string): HTMLElement {
  const box = h("input", { type: "checkbox" });
  box.addEventListener("change", () => page.set({ [field]: box.checked }));
  page.follow([field], (view) => {
    box.checked = view[field];
  });
  return h("label", { class: "choose check" }, box, ` ${label}`);
}

/** The axes that have something to choose, for a list. */
export const axisChoices = (model: Model, none?: string, numeric = false): [string, string][] => [
  ...(none === undefined ? [] : [["", none] as [string, string]]),
  ...model.axes.flatMap((a, i): [string, string][] =>
    a.values.length > 1 && (!numeric || model.numbers(i)) ? [[a.name, a.name]] : [],
  ),
];

/**
 * What a reader must know of a chart: what its means are of, and where a figure is not that of a
 * real run.
 */
export const caveats = (
  model: Model,
  view: View,
  cells: Cell[],
  merged: number[],
  lines = "",
): string =>
  [
    merged.length > 0 &&
      `What differs only by ${merged.map((a) => model.axes[a]!.name).join(", ")} is drawn as ` +
        `its mean${lines}. Choose values above for single cells.`,
    cells.some((c) => model.idle(c, view.figure)) &&
      `On an imaginary device nothing is computed, so ${model.about(view.figure).title} of ` +
        "these cells is not that of a real run.",
  ]
    .filter(Boolean)
    .join(" ");
