// What changed on the page, said to screen readers.

import { h } from "../../views/dom";

let place: HTMLElement | null = null;

/** Says a text once, without moving the focus. */
export function announce(text: string): void {
  if (!place)
    document.body.append(
      (place = h("div", { class: "unseen", "aria-live": "polite", role: "status" })),
    );
  place.textContent = text;
}
