import type { Report, StackSet } from "../api";
import { bytes, place, quantity } from "../lib/format";
import { figures, grow } from "../lib/icicle";
import { patternOf } from "../state/selection";
import type { PageStore } from "../state/store";
import { h, section, type Child } from "./dom";
import { calledBy, choices, flame, plain, type How } from "./flame";

/** Device memory by call stack: the outermost call at the top, as wide as what it holds. */
export function flames(report: Report, page: PageStore): HTMLElement | null {
  const sets = (report.stacks ?? []).filter((s) => s.name === "device" && (s.total_bytes > 0 || s.measures?.some((m) => m.total > 0)));
  return sets.length ? section("flames", "Who holds the device's memory", ...oneAtATime(sets.map((s) => [`device ${s.device_number}`, s.file, () => picture(s, page)]))) : null;
}

function picture(set: StackSet, page: PageStore): HTMLElement {
  const measures = set.measures?.filter((m) => m.total > 0) ?? [];
  let measure = measures[0], how = plain;
  const draw = () => {
    const of = measure, what = of?.name === "bytes-time" ? " on average" : of?.name === "count" ? " allocations" : of?.name === "churn" ? " freed again" : "";
    graph.show({ title: set.title, frames: set.frames, root: grow(set, figures[of?.name ?? ""] ?? "bytes"), figure: (n) => quantity(n, of?.unit ?? "bytes") + what, ...(measures[0]?.rest ? { rest: `Stacks too small to draw hold ${bytes(measures[0].rest)} more.` } : {}) }, how);
    chosen.follow();
  };
  const changed = (to: Partial<How>) => { how = { ...how, ...to }; draw(); };
  const graph = flame({ change: changed, find: (search) => page.set({ search: page.get().search === search ? "" : search }) }), chosen = choices(() => how, changed);
  draw();
  page.follow(["line", "search"], ({ line, search }) => {
    const pattern = patternOf(search);
    graph.search(line ? (f) => place(f.file, f.line) === line : pattern && ((f) => pattern.test(calledBy(f))));
  });
  return h("figure", {}, h("figcaption", {}, set.title, measures.length > 1 && switcher("Measure", measures.map((m): [string, () => void] => [short[m.name] ?? m.name, () => { measure = m; draw(); }]))), chosen.element, graph.element);
}

const short: Record<string, string> = { bytes: "bytes held", "bytes-time": "bytes × time", count: "allocations", churn: "churn" };

/** One picture of several devices, with a button for each, which names the file where there are several. A picture is drawn when it is
 *  first looked at. */
export function oneAtATime(pictures: [device: string, file: string | undefined, draw: () => HTMLElement][]): Child[] {
  if (pictures.length < 2) return pictures.map(([, , draw]) => draw());
  const drawn: HTMLElement[] = [], place = h("div", {}), files = new Set(pictures.map(([, file]) => file)).size;
  const show = (i: number) => place.replaceChildren(drawn[i] ??= pictures[i]![2]());
  show(0);
  return [h("p", { class: "tabs" }, switcher("Device", pictures.map(([device, file], i): [string, () => void] => [files > 1 ? `${device} of ${file}` : device, () => show(i)]))), place];
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
