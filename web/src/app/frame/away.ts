// Whether the server answers, and can read its data directory. When not, a banner says so and the
// page comes back by itself.

import { h } from "../../views/dom";
import { api } from "../door";

const againMs = 1_000;
let away = false,
  stranger = false,
  unread = "",
  version = "",
  asking = false;
let element: HTMLElement;

/**
 * Told by every request: the status of the answer, 0: there was none. One that does not let this
 * browser in is away too, until it does.
 */
export function answered(status: number): void {
  const gone = status === 0 || status === 401,
    asks = status === 401;
  if (gone === away && asks === stranger) return;
  const same = gone === away;
  [away, stranger] = [gone, asks];
  if (same) return say();
  dispatchEvent(new Event(away ? "hightide:away" : "hightide:back"));
  say();
  if (away) later();
}

export const isUnread = (): boolean => unread !== "";

/**
 * Something could not be read: where that is the whole data directory, the banner says so until it
 * is back.
 */
export const doubt = (): void => {
  if (!asking) ask();
};

function say(): void {
  element.hidden = !away && !unread;
  if (stranger)
    element.replaceChildren(
      h("b", {}, "The server was started again, and lets nobody in who was in before."),
      " What is shown stays. Type ",
      h("code", {}, "hightide ui"),
      " in a terminal and open the address that it prints, in any tab: this page goes on then.",
    );
  else if (away)
    element.replaceChildren(
      h("b", {}, "The server went away."),
      " What is shown stays, and goes on once the server answers. Where ",
      h("code", {}, "hightide ui"),
      " is started again, open the address that it prints.",
    );
  else
    element.replaceChildren(
      ...(unread
        ? [unread, " What was read stays; the page goes on by itself once it is back."]
        : []),
    );
}

function ask(): void {
  asking = true;
  void api("/status", { cache: "no-store" })
    .then(async (answer) => {
      if (answer.status === 401) return answered(401);
      const now = (await answer.json()) as { version?: string; problem?: string; detail?: string },
        said = (answer.ok ? now.problem : now.detail?.replace(/: try again$/, "")) ?? "";
      // another hightide: its page too
      if (version && now.version && now.version !== version) location.reload();
      version = now.version ?? version;
      answered(answer.status);
      if (said === unread) return;
      unread = said && `${said[0]!.toUpperCase()}${said.slice(1)}.`;
      dispatchEvent(new Event(unread ? "hightide:unread" : "hightide:back"));
      say();
    })
    .catch(() => answered(0))
    .finally(() => {
      asking = false;
      if (away || unread) later();
    });
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
