// The parts of the section of timelines: tools, the axis, the box of tracks, what was chosen.

import { h, section } from "../views/dom";
import { groupings } from "./model";

/** What the buttons do. */
export interface Buttons {
  whole(): void;
  follow(): void;
  fit(): void;
}

export type Panel = ReturnType<typeof panelOf>;

export function panelOf(map: HTMLElement, does: Buttons) {
  const find = h("input", {
    type: "search",
    placeholder: "Find a track",
    "aria-label": "Find a track",
    "aria-keyshortcuts": "/",
  });
  const by = h(
    "select",
    { "aria-label": "Group tracks by" },
    ...groupings.map((g) => h("option", { value: g }, `by ${g}`)),
  );
  const whole = button("Show the whole run", "Key f", does.whole),
    follow = button("Follow the end", "Key e", does.follow),
    zero = button("", "Key y", does.fit);
  const reading = h("p", { class: "reading", role: "status" }),
    tip = h("div", { class: "tracks-tip", hidden: "" }),
    ranged = h("div", { class: "ranged" }),
    list = h("div", { class: "events-list" });
  const inside = boxOf(map);
  const element = section(
    "timeline",
    "Memory over time",
    h("div", { class: "tools" }, find, by, zero, whole, follow),
    reading,
    h("div", { class: "tracks-box" }, inside.box, tip),
    ranged,
    list,
  );
  return { element, find, by, whole, follow, zero, reading, tip, ranged, list, ...inside };
}

function button(text: string, title: string, then: () => void): HTMLButtonElement {
  const b = h("button", { type: "button", class: "plain", title }, text);
  b.addEventListener("click", then);
  return b;
}

/** The box that has the focus: the axis and the pinned tracks above the groups. */
function boxOf(map: HTMLElement) {
  const axis = h("canvas", { "aria-hidden": "true" }),
    moment = h("span", { class: "moment" }),
    axisPlot = h("div", { class: "axis" }, axis);
  const pins = h("div", { class: "pins", role: "list", "aria-label": "Pinned tracks" }),
    body = h("div", { class: "groups" }),
    none = h("p", { class: "hint", hidden: "" }, "No track matches these letters.");
  const box = h(
    "div",
    {
      class: "tracks",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Tracks. Arrow keys move a line through all of them; w and s zoom, a and d pan, " +
        "f shows the whole run.",
    },
    h(
      "div",
      { class: "tracks-top" },
      h("div", { class: "gutter map-gutter" }),
      map,
      h("div", { class: "gutter axis-gutter" }, moment),
      axisPlot,
      pins,
    ),
    body,
    none,
  );
  return { box, axis, moment, axisPlot, pins, body, none };
}
