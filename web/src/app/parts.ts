// What a page shows while it waits, where there is nothing, and where something failed.

import { sentence } from "../lib/format";
import { copier, h, type Child } from "../views/dom";
import { Problem, saveFile } from "./api";
import { isUnread } from "./frame/away";
import { toast } from "./frame/toast";

/** Grey lines of the height that the content will have, so that nothing moves when it comes. */
export const busy = (lines = 6, height = 44): HTMLElement =>
  h(
    "div",
    { class: "busy", "aria-hidden": "true" },
    ...Array.from({ length: lines }, () => h("i", { style: `height:${height}px` })),
  );

/** There is nothing yet: what this place is for, and the command that fills it. */
export const empty = (title: string, text: Child, command = "", ...more: Child[]): HTMLElement =>
  h(
    "div",
    { class: "empty" },
    h("h2", {}, title),
    h("p", {}, text),
    command ? copier(command, { class: "command" }, h("code", {}, command)) : null,
    ...more,
  );

/**
 * What the server said, and a button that asks again. Where the server or its data directory is
 * away, the banner says that; the page asks again once it is back.
 */
export function failure(problem: unknown, again?: () => void): HTMLElement {
  const text =
    problem instanceof Problem
      ? problem.message
      : problem instanceof Error
        ? problem.message
        : String(problem);
  const button = again && h("button", { type: "button", class: "button" }, "Try again");
  button?.addEventListener("click", () => again!());
  const missing = problem instanceof Problem && problem.status === 404,
    said = h("p", {}, ended(sentence(text))),
    element = h(
      "div",
      { class: "failure", role: "alert" },
      said,
      button,
      missing && h("a", { class: "button", href: "/" }, "To the runs"),
    );
  if (again && problem instanceof Problem && (problem.status === 0 || problem.status === 503)) {
    const follow = (name: string, does: () => void) => {
      const heard = () => {
        if (element.isConnected) does();
        else removeEventListener(name, heard);
      };
      addEventListener(name, heard);
    };
    follow("hightide:unread", () => {
      said.textContent = "Not read. It is shown here once runs can be read again.";
    });
    follow("hightide:back", again);
    if (isUnread()) said.textContent = "Not read. It is shown here once runs can be read again.";
  }
  return element;
}

/** A button that saves what the API has at a path as a file. */
export function saver(text: string, title: string, path: () => string, name: string): HTMLElement {
  const button = h("button", { type: "button", class: "button", title }, text);
  button.addEventListener(
    "click",
    () => void saveFile(path(), name).catch((e: Error) => toast(e.message, { bad: true })),
  );
  return button;
}

/** With its full stop. */
const ended = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`);

/** A promise that was given up because its page closed is not a failure. */
export const givenUp = (problem: unknown): boolean =>
  problem instanceof DOMException && problem.name === "AbortError";
