// What a page shows while it waits, where there is nothing, and where something failed.

import { copier, h, type Child } from "../views/dom";
import { Problem } from "./api";

/** Grey lines of the height that the content will have, so that nothing moves when it comes. */
export const busy = (lines = 6, height = 44): HTMLElement =>
  h("div", { class: "busy", "aria-hidden": "true" }, ...Array.from({ length: lines }, () => h("i", { style: `height:${height}px` })));

/** There is nothing yet: what this place is for, and the command that fills it. */
export const empty = (title: string, text: Child, command = "", ...more: Child[]): HTMLElement =>
  h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), command ? copier(command, { class: "command" }, h("code", {}, command)) : null, ...more);

/** What the server said, and a button that asks again. Silent where the asking was given up. */
export function failure(problem: unknown, again?: () => void): HTMLElement {
  const text = problem instanceof Problem ? problem.message : problem instanceof Error ? problem.message : String(problem);
  const button = again && h("button", { type: "button", class: "button" }, "Try again");
  button?.addEventListener("click", () => again!());
  return h("div", { class: "failure", role: "alert" }, h("p", {}, text), button);
}

/** A promise that was given up because its page closed is no failure. */
export const givenUp = (problem: unknown): boolean => problem instanceof DOMException && problem.name === "AbortError";
