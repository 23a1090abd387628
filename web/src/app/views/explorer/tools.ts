// The row above the picture: devices, search, colours, and steps.

import { count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { filtering, type Board } from "./board";
import { bys, type By } from "./colours";
import { foundText, type Stacked } from "./stacked";

const typedMs = 200;

export const button = (
  text: string,
  then: () => void,
  attributes: Record<string, string> = {},
): HTMLButtonElement => {
  const b = h("button", { type: "button", class: "plain", ...attributes }, text);
  b.addEventListener("click", then);
  return b;
};

export function tools(board: Board, picture: Stacked, step: (by: number) => void): HTMLElement {
  return h(
    "div",
    { class: "tools" },
    deviceTabs(board),
    searchBox(board),
    colourChoice(board),
    button("Show everything", picture.fit),
    button("← event", () => step(-1)),
    button("event →", () => step(1)),
    found(board),
  );
}

function deviceTabs({ app, devices, device }: Board): HTMLElement | null {
  if (devices.length < 2) return null;
  const tabs = devices.map((d) =>
    button(
      `device ${d.device}`,
      () =>
        app.set({
          device: String(d.device),
          window: null,
          bytes: null,
          at: null,
          block: null,
          only: "",
        }),
      { class: "", title: [d.name, `${count(d.events)} events`].filter(Boolean).join(", ") },
    ),
  );
  app.follow(["device"], () =>
    tabs.forEach((t, i) => t.setAttribute("aria-pressed", String(devices[i] === device()))),
  );
  return h("span", { class: "switch", role: "group", "aria-label": "Device" }, ...tabs);
}

function searchBox({ app }: Board): HTMLElement {
  const box = h("input", {
    type: "search",
    placeholder: "frame, 0x address …",
    "aria-label": "Search blocks",
    title:
      "A regular expression of frames, categories, modules and attached texts; " +
      "or an address as 0x7f12c0000000, for the blocks that had it",
  });
  let typing = 0;
  box.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => app.set({ search: box.value.trim() }), typedMs);
  });
  app.follow(["search"], ({ search }) => {
    if (box.value.trim() !== search) box.value = search;
  });
  return box;
}

function colourChoice({ app, colours }: Board): HTMLElement {
  const choice = h(
    "select",
    {},
    ...Object.entries(bys).map(([by, title]) => h("option", { value: by }, title)),
  );
  choice.addEventListener("change", () =>
    app.set({ colour: choice.value === "site" ? "" : choice.value, only: "" }),
  );
  app.follow(["colour"], () => {
    choice.value = colours.by() satisfies By;
  });
  return h("label", { class: "choice" }, "Colours by", choice);
}

/** How much the search and the legend find. */
function found(board: Board): HTMLElement {
  const said = h("p", { class: "hint found-blocks", role: "status" });
  board.follow(["device", ...filtering], () => {
    said.textContent = "";
    if (Object.keys(board.filter()).length)
      board.ask<{ blocks: number; bytes: number; at_peak: number }>(
        "search",
        board.path("search", board.filter()),
        (f) => {
          said.textContent = foundText(f);
        },
      );
  });
  return said;
}
