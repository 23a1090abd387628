// The filters of the list as chips: what runs came to, how they were recorded, and their tags.

import { count } from "../../../lib/format";
import { h } from "../../../views/dom";
import type { Facet } from "../../runlist";

const tagsAtFirst = 5;

export interface Filtering {
  toggle(part: Facet["part"], value: string): void;
  /** Shows all tags, or few of them again. */
  open(): void;
}

/** Fills the place with chips. The one that had the focus keeps it. */
export function showFilters(
  place: HTMLElement,
  facets: Facet[],
  opened: boolean,
  does: Filtering,
): void {
  const focused = place.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).dataset.of
    : undefined;
  const tags = facets.filter((f) => f.part === "tag"),
    // those that are on come first
    kept = opened ? tags : tags.filter((f, i) => f.on || i < tagsAtFirst),
    left = tags.length - kept.length;
  place.replaceChildren(
    ...[...facets.filter((f) => f.part !== "tag"), ...kept].map((f) => chip(f, does)),
    ...(left > 0 || (opened && tags.length > tagsAtFirst) ? [more(left, opened, does)] : []),
  );
  if (focused)
    [...place.children]
      .find((c): c is HTMLElement => (c as HTMLElement).dataset.of === focused)
      ?.focus();
}

function chip({ part, value, count: n, on }: Facet, does: Filtering): HTMLElement {
  const chip = h(
    "button",
    {
      type: "button",
      class: `filter ${part} ${value.replace(" ", "-")}`,
      "aria-pressed": String(on),
      "data-of": `${part}:${value}`,
    },
    value,
    " ",
    h("b", {}, count(n)),
  );
  chip.addEventListener("click", () => does.toggle(part, value));
  return chip;
}

function more(left: number, opened: boolean, does: Filtering): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "filter more", "aria-expanded": String(opened), "data-of": "more" },
    opened ? "fewer tags" : `+${count(left)}`,
  );
  if (!opened) button.setAttribute("aria-label", `+${count(left)} more tags`);
  button.addEventListener("click", does.open);
  return button;
}
