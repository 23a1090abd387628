// Short messages at the lower edge. One that can be undone is final only when its time is over:
// until then nothing was done.

import { h } from "../../views/dom";

export interface Toast {
  undo?: () => void;
  then?: () => void;
  ms?: number;
  bad?: boolean;
}

const undoMs = 8_000,
  plainMs = 4_000;
const open: { undo: (() => void) | null }[] = [];
let shelf: HTMLElement | null = null;

/**
 * Shows a text. With undo it has a button for that (and the key z); `then` is called once when the
 * time is over or the message is closed, and never after undo. The time stands still while the
 * pointer or the focus is on it.
 */
export function toast(
  text: string,
  { undo, then, ms = undo ? undoMs : plainMs, bad = false }: Toast = {},
): { close(): void } {
  if (!shelf)
    document.body.append(
      (shelf = h("div", { class: "toasts", role: "region", "aria-label": "Messages" })),
    );
  const line = h("i", { class: "left", style: `animation-duration:${ms}ms` });
  const close = h(
      "button",
      { type: "button", class: "close", "aria-label": "Close this message" },
      "×",
    ),
    back = undo && h("button", { type: "button", class: "undo" }, "Undo");
  const element = h(
    "div",
    { class: bad ? "toast bad" : "toast", role: bad ? "alert" : "status" },
    h("span", {}, text),
    back,
    close,
    line,
  );
  let gone = false,
    from: EventTarget | null = null; // what had the focus before the message did
  element.addEventListener("focusin", (e) => {
    if (!element.contains(e.relatedTarget as Node | null)) from = e.relatedTarget;
  });
  const end = (done: (() => void) | undefined) => {
    if (gone) return;
    gone = true;
    open.splice(open.indexOf(entry), 1);
    const focused = element.contains(document.activeElement);
    element.remove();
    done?.();
    if (focused)
      (from instanceof HTMLElement && from.isConnected
        ? from
        : document.querySelector("main")
      )?.focus({ preventScroll: true });
  };
  const entry = { undo: undo ? () => end(undo) : null };
  open.push(entry);
  back?.addEventListener("click", () => end(undo));
  close.addEventListener("click", () => end(then));
  patient(element, ms, () => end(then));
  shelf.append(element);
  return { close: () => end(then) };
}

/** Calls after a time, of which what the pointer or the focus is on the element does not count. */
function patient(element: HTMLElement, ms: number, then: () => void): void {
  let left = ms,
    since = performance.now(),
    timer = setTimeout(then, left);
  const hold = () => {
    clearTimeout(timer);
    left -= performance.now() - since;
    element.classList.add("held");
  };
  const go = () => {
    if (!element.classList.contains("held")) return;
    element.classList.remove("held");
    since = performance.now();
    timer = setTimeout(then, left);
  };
  element.addEventListener("pointerenter", hold);
  element.addEventListener("pointerleave", go);
  element.addEventListener("focusin", () => {
    if (!element.classList.contains("held")) hold();
  });
  element.addEventListener("focusout", go);
}

/** Undoes what the newest message offers to; false where none does. */
export function undoNewest(): boolean {
  const newest = open.findLast((t) => t.undo);
  newest?.undo?.();
  return newest !== undefined;
}
