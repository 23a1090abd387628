// The buttons beside a panel's title. i says what the panel shows, and what good and bad look like;
// the other saves it as a picture.

import { elsewhere } from "../../draw/paint";
import { savePanel } from "../../draw/save";
import { lessonOf } from "../../lib/learn";
import { h } from "../dom";
import "./learn.css";

/**
 * Answers the buttons of all panels, of those too that come later. With `key`, the key i as well.
 */
export function teaching(key: boolean): void {
  addEventListener("click", (e) => {
    const button =
        e.target instanceof Element
          ? e.target.closest<HTMLElement>("button.learn, button.as-picture")
          : null,
      panel = button?.closest("section");
    if (button?.matches(".learn")) toggle(button);
    else if (panel) void savePanel(panel, panel.querySelector("h1, h2")?.textContent ?? panel.id);
  });
  if (key)
    addEventListener("keydown", (e) => {
      if (e.key === "i" && !elsewhere(e)) explainHere();
    });
}

let open: { close(): void; by: HTMLElement } | null = null;

function toggle(button: HTMLElement): void {
  const before = open;
  before?.close();
  if (before?.by.dataset.lesson === button.dataset.lesson) return;
  const lesson = lessonOf(button.dataset.lesson!)!,
    title = button.getAttribute("aria-label")!,
    close = h("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
  const box = h(
    "div",
    { class: "lesson", role: "dialog", "aria-label": title, tabindex: "-1" },
    close,
    h("p", {}, lesson.is),
    h("p", {}, h("b", { class: "good" }, "Good "), lesson.good),
    h("p", {}, h("b", { class: "bad" }, "Bad "), lesson.bad),
    lesson.terms
      ? h(
          "dl",
          {},
          ...Object.entries(lesson.terms).flatMap(([term, means]) => [
            h("dt", {}, term),
            h("dd", {}, means),
          ]),
        )
      : null,
  );
  const away = (e: Event) => {
    if (e.target instanceof Node && !box.contains(e.target) && e.target !== now()) end(false);
  };
  const now = () =>
    button.isConnected
      ? button
      : document.querySelector<HTMLElement>(
          `button.learn[data-lesson="${CSS.escape(button.dataset.lesson!)}"]`,
        ); // its panel may have been drawn again
  const end = (back = true) => {
    open = null;
    box.remove();
    button.setAttribute("aria-expanded", "false");
    removeEventListener("pointerdown", away);
    if (back) now()?.focus({ preventScroll: true });
  };
  open = { close: end, by: button };
  close.addEventListener("click", () => end());
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      e.stopPropagation();
      end();
    }
  });
  button.setAttribute("aria-expanded", "true");
  addEventListener("pointerdown", away);
  const { left, top, width } = (
    button.closest("section") ?? button.parentElement!
  ).getBoundingClientRect();
  Object.assign(box.style, {
    left: `${left + scrollX + 20}px`,
    top: `${Math.max(top, 56) + scrollY + 50}px`,
    width: `${Math.min(520, width - 40)}px`,
  });
  // not into the panel, which a live page draws again
  (document.querySelector("main") ?? document.body).append(box);
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: "nearest" });
}

/** Explains the panel that the pointer or the focus is in, else the first one in view. */
export function explainHere(): void {
  const buttons = [...document.querySelectorAll<HTMLElement>("button.learn")];
  const inView = (b: HTMLElement) => {
    const r = (b.closest("section") ?? b).getBoundingClientRect();
    return r.bottom > 80 && r.top < innerHeight;
  };
  const of = (selector: string) => {
    const sections = document.querySelectorAll(selector);
    return buttons.find((b) => {
      const s = b.closest("section");
      return s !== null && [...sections].includes(s);
    });
  };
  (of("section:hover") ?? of("section:focus-within") ?? buttons.find(inView))?.click();
}
