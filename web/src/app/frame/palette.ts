// The command palette: everything that the reader can go to or do, found by a few letters.

import type { Run } from "../../api";
import { search } from "../../lib/fuzzy";
import { commandLine } from "../../lib/format";
import { h } from "../../views/dom";
import { runs } from "../api";
import { keyCap, opened } from "./sheet";

/** Something that can be done from the palette. */
export interface Command {
  title: string;
  kind: "page" | "action" | "panel" | "run";
  key?: string;
  more?: string;
  run: () => void;
}

const most = 60;
// the runs as they were asked for last: the palette is never empty while it asks again
let seen: Run[] = [];

/** Opens the palette over what there is now; open leads to a run. */
export function palette(commands: Command[], open: (run: Run) => void): void {
  if (document.querySelector("dialog.palette")) return;
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Commands" });
  const field = fieldOfLetters();
  const dialog = h(
    "dialog",
    { class: "palette", "aria-label": "Command palette" },
    field,
    list,
    foot(),
  );
  let found: Command[] = [],
    at = 0;
  const all = () => [
    ...commands,
    ...seen.map((run): Command => ({
      title: run.name || run.id,
      kind: "run",
      more: commandLine(run.command ?? []),
      run: () => open(run),
    })),
  ];
  const mark = () => selected(list, field, at);
  const fill = () => {
    const hits = search(field.value, all(), (c) => `${c.title} ${c.more ?? ""}`).slice(0, most);
    found = hits.map((f) => f.item);
    at = Math.min(at, Math.max(0, found.length - 1));
    list.replaceChildren(...hits.map(({ item, at: letters }, i) => row(item, letters, i)));
    if (found.length === 0) {
      list.append(nothing());
      field.removeAttribute("aria-activedescendant");
    }
    mark();
  };
  const pick = (i: number) => {
    const command = found[i];
    dialog.close();
    command?.run();
  };
  pointed(list, {
    over: (i) => {
      if (i >= found.length || i === at) return;
      at = i;
      mark();
    },
    pick: (i) => {
      if (i < found.length) pick(i);
    },
  });
  field.addEventListener("input", () => {
    at = 0;
    fill();
  });
  field.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[e.key];
    if (step !== undefined) {
      e.preventDefault();
      at = found.length ? (at + step + found.length) % found.length : 0;
      mark();
    }
    if (e.key === "Enter") {
      e.preventDefault();
      pick(at);
    }
    if (e.ctrlKey && e.key === "k") {
      e.preventDefault();
      dialog.close();
    }
  });
  fill();
  opened(dialog);
  field.focus();
  askRuns(dialog, fill);
}

const nothing = (): HTMLElement =>
  h(
    "li",
    { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" },
    "Nothing matches these letters.",
  );

/** Asks for the runs as they are now. */
function askRuns(dialog: HTMLDialogElement, then: () => void): void {
  const asking = new AbortController();
  dialog.addEventListener("close", () => asking.abort());
  void runs("", asking.signal).then(
    (answer) => {
      seen = answer.runs;
      if (dialog.open) then();
    },
    () => {
      /* the banner tells */
    },
  );
}

/** Marks the chosen row, which the field then stands for. */
const selected = (list: HTMLElement, field: HTMLElement, at: number): void =>
  [...list.children].forEach((row, i) => {
    row.setAttribute("aria-selected", String(i === at));
    if (i !== at) return;
    row.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", row.id);
  });

const fieldOfLetters = (): HTMLInputElement =>
  h("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    "aria-label": "Find a page, a run, a panel or an action",
    placeholder: "Find a page, run, panel or action",
    autocomplete: "off",
    spellcheck: "false",
  });

const foot = (): HTMLElement =>
  h(
    "p",
    { class: "palette-foot" },
    keyCap("ArrowUp"),
    keyCap("ArrowDown"),
    " choose ",
    keyCap("Enter"),
    " do it ",
    keyCap("Esc"),
    " close",
  );

/** Tells the number of the row that the pointer is over, and of the one that is clicked. */
function pointed(list: HTMLElement, on: { over(i: number): void; pick(i: number): void }): void {
  const rowAt = (e: Event) => [...list.children].findIndex((row) => row.contains(e.target as Node));
  list.addEventListener("click", (e) => {
    const i = rowAt(e);
    if (i >= 0) on.pick(i);
  });
  list.addEventListener("pointermove", (e) => {
    const i = rowAt(e);
    if (i >= 0) on.over(i);
  });
}

function row({ title, kind, key, more }: Command, letters: number[], i: number): HTMLElement {
  const lit = new Set(letters);
  return h(
    "li",
    { role: "option", id: `palette-${i}`, "aria-selected": "false" },
    h("span", { class: "palette-kind" }, kind),
    h("span", { class: "palette-title" }, ...marked(title, lit, 0)),
    more ? h("span", { class: "palette-more" }, ...marked(more, lit, title.length + 1)) : null,
    key ? keyCap(key) : null,
  );
}

/** A text whose letters at some places are marked. */
function marked(text: string, at: Set<number>, offset = 0): (HTMLElement | string)[] {
  const parts: (HTMLElement | string)[] = [];
  let run = "",
    lit = false;
  const push = () => {
    if (run) parts.push(lit ? h("mark", {}, run) : run);
    run = "";
  };
  [...text].forEach((letter, i) => {
    const now = at.has(i + offset);
    if (now !== lit) {
      push();
      lit = now;
    }
    run += letter;
  });
  push();
  return parts;
}
