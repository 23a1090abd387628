// The events of a run as a list below the tracks, and the tip of one that is under the pointer.

import type { Mark } from "../api";
import { severe } from "../draw/marks";
import { count, duration } from "../lib/format";
import { h } from "../views/dom";

const mostListed = 500,
  openUpTo = 4; // so few are shown at once

/** Fills the list where there are other events than it has; go leads to one. What stays is kept. */
export function listEvents(list: HTMLElement, marks: Mark[], go: (time: number) => void): void {
  if (list.dataset.n === `${marks.length}`) return;
  list.dataset.n = `${marks.length}`;
  if (marks.length === 0) return list.replaceChildren();
  const box = list.querySelector("details") ?? emptyList(marks.length <= openUpTo);
  if (!box.isConnected) list.replaceChildren(box);
  const more = marks.length > mostListed ? `, of which the first ${mostListed}` : "",
    items = box.querySelector("ol")!,
    shown = marks.slice(0, mostListed),
    same = [...items.children].findIndex(
      (e, i) => (e as HTMLElement).dataset.key !== keyOf(shown[i]),
    ),
    kept = same < 0 ? items.childElementCount : same;
  box.querySelector("summary")!.textContent =
    marks.length === 1 ? "1 event" : `${count(marks.length)} events${more}`;
  while (items.childElementCount > kept) items.lastChild!.remove();
  items.append(...shown.slice(kept).map((m) => item(m, go)));
}

function emptyList(open: boolean): HTMLElement {
  return h(
    "details",
    { class: "events", ...(open && { open: "" }) },
    h("summary", {}),
    h("ol", {}),
  );
}

function keyOf(m: Mark | undefined): string {
  return m ? `${m.time_ns} ${m.kind} ${m.text}` : "";
}

function item(m: Mark, go: (time: number) => void): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "plain", title: "Go to this moment" },
    duration(m.time_ns),
  );
  button.addEventListener("click", () => go(m.time_ns));
  return h(
    "li",
    { "data-key": keyOf(m) },
    button,
    " ",
    h("b", { class: severe.includes(m.kind) ? "critical" : "warning" }, m.kind),
    m.text && m.text !== m.kind ? ` ${m.text}` : null,
  );
}

/** Shows a tip of an event beside the pointer, within the box; null: there is none. */
export function tipOf(
  tip: HTMLElement,
  mark: Mark | null,
  at: { x: number; y: number } | null,
  box: HTMLElement,
): void {
  tip.hidden = !mark;
  if (!mark || !at) return;
  tip.replaceChildren(
    h("b", {}, mark.kind),
    ` ${duration(mark.time_ns)}`,
    h("span", {}, mark.text),
  );
  const around = box.getBoundingClientRect(),
    left = Math.min(at.x - around.left + 12, around.width - 300);
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${at.y - around.top + 16}px`;
}
