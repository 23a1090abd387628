// Whether the server answers, and can read its data directory. When not, a banner says so and the page comes back by itself.

import { h } from "../../views/dom";

const againMs = 1_000;
let away = false, unread = "", version = "", asking = false;
let element: HTMLElement;

/** Told by every request: the server answered, or it did not. */
export function answered(yes: boolean): void {
  if (yes === !away) return;
  away = !yes;
  dispatchEvent(new Event(away ? "hightide:away" : "hightide:back"));
  say();
  if (away) later();
}

export const isUnread = (): boolean => unread !== "";

/** Something could not be read: where that is the whole data directory, the banner says so until it is back. */
export const doubt = (): void => { if (!asking) ask(); };

function say(): void {
  element.hidden = !away && !unread;
  if (away) element.replaceChildren(h("b", {}, "The server went away."), " What is shown stays; the page goes on by itself when ", h("code", {}, "hightide ui"), " runs again.");
  else element.replaceChildren(...(unread ? [unread, " What was read stays; the page goes on by itself once it is back."] : []));
}

function ask(): void {
  asking = true;
  void fetch("/api/v1/status", { cache: "no-store" }).then(async (answer) => {
    const now = (await answer.json()) as { version?: string; problem?: string }, said = now.problem ?? "";
    if (version && now.version !== version) location.reload(); // another hightide: its page too
    version = now.version ?? "";
    answered(true);
    if (said === unread) return;
    unread = said && `${said[0]!.toUpperCase()}${said.slice(1)}.`;
    dispatchEvent(new Event(unread ? "hightide:unread" : "hightide:back"));
    say();
  }).catch(() => answered(false)).finally(() => { asking = false; if (away || unread) later(); });
}

let timer = 0;
function later(): void {
  clearTimeout(timer);
  timer = window.setTimeout(doubt, againMs);
}

/** The banner; it asks until all is there again. Views follow the event hightide:back. */
export function awayBanner(): HTMLElement {
  element = h("div", { class: "away", role: "alert", hidden: "" });
  ask();
  return element;
}
