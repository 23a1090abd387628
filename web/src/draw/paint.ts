// Light and dark: the reader's choice, the system's until then, and white on paper.

import type { Store } from "../state/store";

const wantsDark = () => matchMedia("(prefers-color-scheme: dark)");

/** Whether the system asks for dark colours. */
export const darkAtFirst = () => wantsDark().matches;

/** Whether a key was meant for a field that takes texts, or for the browser. */
export const elsewhere = (e: KeyboardEvent) =>
  (e.target instanceof Element && e.target.matches("input, select, textarea")) ||
  e.ctrlKey ||
  e.metaKey ||
  e.altKey;

/**
 * Keeps the page in the colours that its state asks for; charts follow the event hightide:theme.
 */
export function painted(page: Store<{ dark: boolean }>): void {
  const paint = (dark: boolean) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    dispatchEvent(new Event("hightide:theme"));
  };
  page.follow(["dark"], ({ dark }) => paint(dark));
  wantsDark().addEventListener("change", (e) => page.set({ dark: e.matches }));
  addEventListener("keydown", (e) => {
    if (e.key === "t" && !elsewhere(e)) page.set({ dark: !page.get().dark });
  });
  addEventListener("beforeprint", () => {
    // paper is white and cannot be clicked
    document.documentElement.dataset.theme = "light";
    for (const d of document.querySelectorAll("details:not([open])")) {
      d.setAttribute("open", "");
      d.setAttribute("data-closed", "");
    }
  });
  addEventListener("afterprint", () => {
    for (const d of document.querySelectorAll("details[data-closed]")) {
      d.removeAttribute("open");
      d.removeAttribute("data-closed");
    }
    paint(page.get().dark);
  });
}
