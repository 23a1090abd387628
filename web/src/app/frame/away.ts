// Whether the server answers. When it does not, a banner says so and the page comes back by itself.

import { h } from "../../views/dom";

const againMs = 1_000;
let away = false, version = "";

/** Told by every request: the server answered, or it did not. */
export function answered(yes: boolean): void {
  if (yes === !away) return;
  away = !yes;
  dispatchEvent(new Event(away ? "hightide:away" : "hightide:back"));
}

export const isAway = (): boolean => away;

/** The banner; it asks until the server is there again. Views follow the event hightide:back. */
export function awayBanner(): HTMLElement {
  const element = h("div", { class: "away", role: "alert", hidden: "" });
  const ask = () => void fetch("/api/v1/status", { cache: "no-store" }).then(async (answer) => {
    const now = ((await answer.json()) as { version?: string }).version ?? "";
    if (version && now !== version) location.reload(); // another hightide: its page too
    version = now;
    answered(true);
  }).catch(() => answered(false)).finally(() => { if (away) setTimeout(ask, againMs); });
  addEventListener("hightide:away", () => {
    element.hidden = false;
    element.replaceChildren(h("b", {}, "The server went away."), " What is shown stays; the page goes on by itself when ", h("code", {}, "hightide ui"), " runs again.");
    setTimeout(ask, againMs);
  });
  addEventListener("hightide:back", () => { element.hidden = true; element.replaceChildren(); });
  ask();
  return element;
}
