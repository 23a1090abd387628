// A run's name and tags, changed where they stand. What was changed is sent at once and can be
// taken back.

import type { Run } from "../../../api";
import { count } from "../../../lib/format";
import { h } from "../../../views/dom";
import { patch } from "../../api";
import { toast } from "../../frame/toast";
import { readTags, tagChange, tagsText } from "../../runlist";

interface Change {
  name?: string;
  set?: Record<string, string>;
  remove?: string[];
}

const send = (id: string, change: Change) => patch<Run>(`/runs/${encodeURIComponent(id)}`, change);
const failed = (e: unknown) => {
  toast((e as Error).message, { bad: true });
};

/**
 * Puts a field in the place of what a cell shows. done is called once it is closed, changed with
 * the row as the server has it.
 */
export function edit(
  cell: HTMLElement,
  run: Run,
  what: "name" | "tags",
  changed: (run: Run) => void,
  done: () => void,
): void {
  if (run.state === "running")
    return void toast("A run is renamed and tagged after its end: this one is still recorded.", {
      bad: true,
    });
  if (run.from)
    return void toast(
      "The recording of this run lies outside the data directory, so it is only looked at.",
      { bad: true },
    );
  const before = what === "name" ? (run.name ?? "") : tagsText(run);
  const field = h("input", {
    type: "text",
    class: "editing",
    value: before,
    maxlength: what === "name" ? "200" : "2000",
    "aria-label":
      what === "name" ? `Name of ${run.name || run.id}` : `Tags of ${run.name || run.id}`,
    placeholder: what === "name" ? run.id : "model=bert team=nlp keep",
    spellcheck: "false",
    autocomplete: "off",
  });
  const shown = [...cell.childNodes];
  let ended = false;
  const end = (save: boolean) => {
    if (ended) return;
    ended = true;
    const text = field.value.trim();
    field.remove();
    cell.replaceChildren(...shown);
    done();
    if (save && text !== before) store(run, what, text, changed);
  };
  field.addEventListener("keydown", (e) => {
    e.stopPropagation(); // letters are the field's
    if (e.key === "Enter") {
      e.preventDefault();
      end(true);
    }
    if (e.key === "Escape") end(false);
  });
  field.addEventListener("blur", () => end(true));
  cell.replaceChildren(
    field,
    h(
      "small",
      { class: "hint" },
      what === "name" ? "Enter keeps it, Escape does not" : "name=value or a word, apart by spaces",
    ),
  );
  field.focus();
  field.select();
}

function store(run: Run, what: "name" | "tags", text: string, changed: (run: Run) => void): void {
  const was = run.tags ?? {},
    to = what === "tags" ? readTags(text) : was;
  const change: Change = what === "name" ? { name: text } : tagChange(was, to),
    back: Change = what === "name" ? { name: run.name ?? "" } : tagChange(to, was);
  const said =
    what === "name" ? (text ? `Renamed to ${text}` : "It goes by its id now") : "Tags changed";
  send(run.id, change).then((row) => {
    changed(row);
    toast(said, { undo: () => void send(run.id, back).then(changed, failed) });
  }, failed);
}

/** Adds tags to several runs, and removes those that have a - before them. */
export async function tagAll(
  runs: Run[],
  text: string,
  changed: (run: Run) => void,
): Promise<void> {
  const words = text.split(/\s+/).filter(Boolean),
    gone = words.filter((w) => w.startsWith("-")).map((w) => w.slice(1).split("=")[0]!),
    set = readTags(words.filter((w) => !w.startsWith("-")).join(" "));
  const backs: [string, Change][] = [];
  for (const run of runs) {
    const was = run.tags ?? {},
      to = {
        ...Object.fromEntries(Object.entries(was).filter(([k]) => !gone.includes(k))),
        ...set,
      },
      change = tagChange(was, to);
    if (Object.keys(change.set).length + change.remove.length === 0) continue;
    try {
      changed(await send(run.id, change));
      backs.push([run.id, tagChange(to, was)]);
    } catch (e) {
      failed(e);
    }
  }
  if (backs.length)
    toast(`Tags of ${backs.length} run${backs.length === 1 ? "" : "s"} changed`, {
      undo: () => {
        for (const [id, back] of backs) void send(id, back).then(changed, failed);
      },
    });
}

/** A field for tags in place of a button, which comes back when it is answered or left. */
export function askTags(button: HTMLElement, runs: number, then: (words: string) => void): void {
  const field = h("input", {
    type: "text",
    class: "editing",
    placeholder: "team=nlp -old",
    "aria-label": `Tags for ${runs} runs; - before one removes it`,
    spellcheck: "false",
  });
  const hint = `for ${count(runs)} runs; - before a tag removes it, Enter does it`,
    form = h("form", { class: "tag-all" }, field, h("small", { class: "hint" }, hint));
  let ended = false; // a field that goes away loses the focus, which would end it again
  const end = () => {
    if (ended) return;
    ended = true;
    form.remove();
    button.hidden = false;
  };
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    end();
    then(field.value);
  });
  field.addEventListener("keydown", (e) => {
    e.stopPropagation();
    if (e.key === "Escape") {
      end();
      button.focus();
    }
  });
  field.addEventListener("blur", end);
  button.after(form);
  field.focus();
}
