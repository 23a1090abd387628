import type { Report, StackSet } from "../api";
import { place, quantity } from "../lib/format";
import { figures, grow } from "../lib/icicle";
import { patternOf } from "../state/selection";
import type { PageStore } from "../state/store";
import { badge, h, section, type Child } from "./dom";
import { calledBy, choices, flame, plain, type How } from "./flame";

/** Device memory by call stack: the outermost call at the top, as wide as what it holds. */
export function flames(report: Report, page: PageStore): HTMLElement | null {
  const sets = setsOf(report, "device");
  return sets.length ? section("flames", "Who holds the device's memory", ...oneAtATime(sets.map((s) => [`device ${s.device_number}`, s.file, () => picture(s, page)]))) : null;
}

/** The heaps of processes by call stack: at their highest, at the end, and what was freed again. */
export function heapFlames(report: Report, page: PageStore): HTMLElement | null {
  const sets = setsOf(report, "heap");
  return sets.length ? section("heap-flames", "Who holds the host's memory", ...oneAtATime(sets.map((s) => [s.of ?? s.title, undefined, () => picture(s, page)]), "Process")) : null;
}

const setsOf = (report: Report, name: string) => (report.stacks ?? []).filter((s) => s.name === name && (s.total_bytes > 0 || s.measures?.some((m) => m.total > 0)));

function picture(set: StackSet, page: PageStore): HTMLElement {
  const measures = set.measures?.filter((m) => m.total > 0) ?? [];
  const title = h("span", {});
  let measure = measures[0], how = plain;
  const draw = () => {
    const of = measure, what = of?.name === "bytes-time" ? " on average" : of?.name === "count" ? " allocations" : of?.name === "churn" ? " freed again" : "";
    graph.show({ title: set.title, frames: set.frames, root: grow(set, figures[of?.name ?? ""] ?? "bytes"), figure: (n) => quantity(n, of?.unit ?? "bytes") + what, counted: set.name === "device" && of === measures[0], ...(of?.rest ? { rest: `Stacks too small to draw have ${quantity(of.rest, of.unit)} more.` } : {}) }, how);
    title.textContent = set.name === "heap" && of ? `${quantity(of.total, of.unit)}: ${of.title}` : set.title;
    chosen.follow();
  };
  const changed = (to: Partial<How>) => { how = { ...how, ...to }; draw(); };
  const graph = flame({ change: changed, find: (search) => page.set({ search: page.get().search === search ? "" : search }) }), chosen = choices(() => how, changed, ["order"]);
  draw();
  page.follow(["line", "search"], ({ line, search }) => {
    const pattern = patternOf(search);
    graph.search(line ? (f) => place(f.file, f.line) === line : pattern && ((f) => pattern.test(calledBy(f))));
  });
  return h("figure", {}, h("figcaption", {}, title, set.name === "heap" && badge(set.label), measures.length > 1 && switcher("Measure", measures.map((m): [string, () => void] => [(set.name === "heap" ? shortOfHeaps : short)[m.name] ?? m.name, () => { measure = m; draw(); }]))), chosen.element, graph.element);
}

const short: Record<string, string> = { bytes: "bytes held", "bytes-time": "bytes × time", count: "allocations", churn: "churn" };
const shortOfHeaps: Record<string, string> = { bytes: "held at the peak", end: "held at the end", churn: "freed again" };

/** One picture of several devices, with a button for each, which names the file where there are several. A picture is drawn when it is
 *  first looked at. */
export function oneAtATime(pictures: [device: string, file: string | undefined, draw: () => HTMLElement][], what = "Device"): Child[] {
  if (pictures.length < 2) return pictures.map(([, , draw]) => draw());
  const drawn: HTMLElement[] = [], place = h("div", {}), files = new Set(pictures.map(([, file]) => file)).size;
  const show = (i: number) => place.replaceChildren(drawn[i] ??= pictures[i]![2]());
  show(0);
  return [h("p", { class: "tabs" }, switcher(what, pictures.map(([device, file], i): [string, () => void] => [files > 1 ? `${device} of ${file}` : device, () => show(i)]))), place];
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
  return h("span", { class: "switch", role: "group", "aria-label": label }, ...buttons as Child[]);
}
