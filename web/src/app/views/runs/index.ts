// The list of runs: searched, filtered, ordered, renamed, tagged, compared, deleted; rows follow
// runs that are recorded just now.

import type { Run } from "../../../api";
import "./runs.css";
import { count } from "../../../lib/format";
import { explainer, h } from "../../../views/dom";
import { post, runs as fetchRuns } from "../../api";
import { doubt } from "../../frame/away";
import { toast } from "../../frame/toast";
import { busy, empty, failure } from "../../parts";
import {
  chosen,
  columnOf,
  columnsOf,
  columnsText,
  conditions,
  facets,
  grouped,
  outcome,
  readQuery,
  sortOf,
  tagsOf,
  toggled,
  type Row,
} from "../../runlist";
import { go, type App } from "../../state";
import { stream } from "../../stream";
import type { Shown } from "../page";
import { columnChooser } from "./columns";
import { edit, tagAll } from "./edit";
import { sparks } from "./sparks";
import { runTable } from "./table";
import { showFilters } from "./filters";

const most = 10_000;

/** The rows that are runs. */
const singles = (rows: Row[]): Run[] => rows.filter((r) => !r.trials);

export function runsPage(app: App): Shown {
  const asking = new AbortController(),
    known = new Map<string, Run>(),
    picked = new Set<string>(),
    hidden = new Set<string>();
  let shown: Row[] = [],
    columns = columnsOf(app.get().params.columns),
    sort = app.get().params.sort ?? "",
    text = app.get().search,
    loaded = false,
    last = "",
    opened = false;
  const search = h("input", {
    type: "search",
    placeholder: "Search names, commands, tags; state:failed, peak>1GiB, tag:model=bert",
    "aria-label": "Search the runs (key /)",
    value: text,
    spellcheck: "false",
  });
  const button = (title: string, key: string, act: () => void) => {
    const b = h("button", { type: "button", class: "button", "aria-keyshortcuts": key }, title);
    b.addEventListener("click", act);
    return b;
  };
  const compare = button("Compare", "c", () => comparing()),
    retag = button("Tag", "T", () => tagging()),
    drop = button("Delete", "Delete", () => deleting());
  const total = h("span", { class: "hint", role: "status" }),
    chips = h("div", { class: "filters", role: "group", "aria-label": "Filters" }),
    waiting = busy(),
    place = h("div", { hidden: "" });
  const ask = (search: string, change: Record<string, string> = {}) =>
    app.set({
      search,
      params: Object.fromEntries(
        Object.entries({ ...app.get().params, ...change }).filter(([, v]) => v),
      ),
    });
  const chooser = columnChooser((names) => ask(text, { columns: columnsText(names) }));
  const small = sparks((ids) => table.again(ids));
  const table = runTable({
    order: (name) => {
      const now = sortOf(sort);
      ask(text, {
        sort: now.name === name && now.down === columnOf(name)!.down ? `-${name}` : name,
      });
    },
    pick: (id, on, range) => {
      const [a, b] = [shown.findIndex((r) => r.id === last), shown.findIndex((r) => r.id === id)];
      for (const run of range && a >= 0
        ? singles(shown.slice(Math.min(a, b), Math.max(a, b) + 1))
        : [{ id }])
        if (on) picked.add(run.id);
        else picked.delete(run.id);
      last = id;
      draw();
    },
    pickAll: (on) => {
      for (const run of singles(shown))
        if (on) picked.add(run.id);
        else picked.delete(run.id);
      draw();
    },
    tag: (value) => ask(toggled(text, "tag", value)),
    edit: (id, what) => editing(what, id),
    spark: (run) => small.of(run),
    view: (runs) => small.want(columns.includes("curve") ? singles(runs) : []),
  });
  const changed = (run: Run) => {
    known.set(run.id, { ...known.get(run.id), ...run });
    draw();
  };

  const draw = () => {
    const all = [...known.values()].filter((run) => !hidden.has(run.id)),
      query = readQuery(text);
    for (const id of picked) if (!known.has(id) || hidden.has(id)) picked.delete(id);
    const found = chosen(all, query, sort);
    shown = chosen(grouped(found, query), readQuery(""), sort);
    total.textContent = totalText(all, found.length, picked.size, query.wrong);
    compare.disabled = picked.size !== 2;
    compare.title = picked.size === 2 ? "Compare the two (key c)" : "Select two runs";
    retag.disabled = drop.disabled = picked.size === 0;
    showFilters(chips, facets(all, query), opened, {
      toggle: (part, value) => ask(toggled(text, part, value)),
      open: () => {
        opened = !opened;
        draw();
      },
    });
    chooser.show(columns, [...new Set(all.flatMap((r) => Object.keys(r.tags ?? {})))].sort());
    const content =
      all.length === 0
        ? noRuns()
        : shown.length === 0
          ? empty("No run matches", "Search for fewer words, or take a filter away.")
          : table.element;
    waiting.remove();
    place.hidden = false;
    if (place.firstElementChild !== content) place.replaceChildren(content);
    if (content === table.element) table.show({ runs: shown, columns, sort, picked });
  };
  const editing = (
    what: "name" | "tags",
    id = shown[table.at()]?.id ?? (picked.size === 1 ? [...picked][0]! : ""),
  ) => {
    const run = known.get(id),
      cell = table.cell(id);
    if (!run || !cell) return void toast("Choose a run first: j and k go through the rows.");
    edit(cell, run, what, changed, () => {
      draw();
      table.focus(shown.findIndex((r) => r.id === id));
    });
  };
  const tagging = () => {
    // of several: what is added and removed; of one: all it has
    if (picked.size < 2) return editing("tags");
    retag.hidden = true;
    askTags(
      retag,
      picked.size,
      (words) =>
        void tagAll(
          [...picked].flatMap((id) => known.get(id) ?? []),
          words,
          changed,
        ),
    );
  };
  const comparing = () => {
    if (picked.size !== 2) return void toast("Select two runs to compare them: x selects.");
    const [b = "", a = ""] = chosen(
      [...known.values()].filter((r) => picked.has(r.id)),
      readQuery(""),
      "",
    ).map((r) => r.id);
    go(app, "/diff", { a, b });
  };
  const deleting = () => {
    // sent when the time to undo is over: a page that is closed before deletes nothing
    const files = [...picked].filter((id) => known.get(id)?.from === "file"),
      ids = [...picked].filter((id) => known.get(id)?.state !== "running" && !files.includes(id));
    if (files.length)
      toast("A recording outside the data directory is not deleted here: delete its file.", {
        bad: true,
      });
    else if (ids.length < picked.size)
      toast("A run that is still recorded cannot be deleted.", { bad: true });
    const first = shown.findIndex((r) => ids.includes(r.id)),
      focused = place.contains(document.activeElement) || document.activeElement === drop;
    picked.clear();
    for (const id of ids) hidden.add(id);
    const back = () => {
      for (const id of ids) hidden.delete(id);
      draw();
    };
    if (ids.length)
      toast(`${count(ids.length)} run${ids.length === 1 ? "" : "s"} deleted`, {
        undo: back,
        then: () =>
          void post("/runs/delete", { ids }).catch((e: Error) => {
            toast(e.message, { bad: true });
            back();
          }),
      });
    draw();
    if (!focused || first < 0) return; // what had the focus is gone, or can do nothing more
    if (shown.length > 0) table.focus(Math.min(first, shown.length - 1));
    else search.focus();
  };

  search.addEventListener("input", () => ask(search.value));
  search.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "Enter") {
      e.preventDefault();
      table.focus(0);
    }
  });
  app.follow(["search", "params"], ({ search: words, params }) => {
    // the address says what is asked for, whoever changed it
    [text, sort, columns] = [words, params.sort ?? "", columnsOf(params.columns)];
    if (search.value !== words) search.value = words;
    if (loaded) draw();
  });
  const load = () =>
    void fetchRuns("", asking.signal, most).then(
      ({ runs }) => {
        loaded = true;
        const before = new Map(known);
        known.clear();
        for (const run of runs) {
          const old = before.get(run.id);
          known.set(run.id, old && JSON.stringify(old) === JSON.stringify(run) ? old : run);
        }
        draw();
      },
      (e: unknown) => {
        if (asking.signal.aborted) return;
        waiting.remove();
        place.hidden = false;
        place.replaceChildren(failure(e, load));
      },
    );
  const live = stream("/live", "/status", {
    open: load,
    problem: doubt,
    runs: ({ runs, removed }: { runs: Run[] | null; removed: string[] | null }) => {
      for (const run of runs ?? []) known.set(run.id, run);
      for (const id of removed ?? []) {
        known.delete(id);
        picked.delete(id);
      }
      if (loaded) draw();
    },
  });
  const element = h(
    "section",
    { id: "runs", "aria-labelledby": "runs-title" },
    h("div", { class: "titled" }, h("h1", { id: "runs-title" }, "Runs"), explainer("runs", "Runs")),
    h("div", { class: "tools" }, search, compare, retag, drop, chooser.element),
    chips,
    total,
    waiting,
    place,
  );
  const step = (by: number) =>
    table.focus(Math.max(0, Math.min(shown.length - 1, table.at() + by)));
  const click = () => {
    const run = shown[table.at()];
    if (run && !run.trials) {
      if (picked.has(run.id)) picked.delete(run.id);
      else picked.add(run.id);
      last = run.id;
      draw();
    }
  };
  return {
    element,
    close: () => {
      asking.abort();
      live.close();
      small.close();
      table.close();
    },
    keys: [
      {
        title: "The list of runs",
        keys: [
          {
            keys: ["/"],
            does: "search",
            run: () => {
              search.focus();
              search.select();
            },
          },
          { keys: ["j"], does: "the next run", run: () => step(1) },
          { keys: ["k"], does: "the run before", run: () => step(-1) },
          { keys: ["Enter"], does: "open it" },
          { keys: ["x"], does: "select it", run: click },
          { keys: ["r", "F2"], does: "rename it", run: () => editing("name") },
          { keys: ["T"], does: "its tags, or those of all selected", run: tagging },
          { keys: ["c"], does: "compare the two selected", run: comparing },
          {
            keys: ["Delete"],
            does: "delete what is selected",
            run: () => {
              if (picked.size) deleting();
            },
          },
        ],
      },
    ],
    commands: () => [
      ...(picked.size === 2
        ? [
            {
              title: "Compare the two selected runs",
              kind: "action" as const,
              key: "c",
              run: comparing,
            },
          ]
        : []),
      ...(picked.size
        ? [
            {
              title: "Delete the selected runs",
              kind: "action" as const,
              key: "Delete",
              run: deleting,
            },
            { title: "Tag the selected runs", kind: "action" as const, key: "T", run: tagging },
          ]
        : []),
      ...(["live", "failed"] as const)
        .filter((s) => [...known.values()].some((r) => outcome(r) === s))
        .map((s) => ({
          title: `Only ${s} runs`,
          kind: "action" as const,
          run: () => ask(toggled(text, "state", s)),
        })),
      ...[...new Set([...known.values()].flatMap(tagsOf))].map((t) => ({
        title: `Only runs with ${t}`,
        kind: "action" as const,
        run: () => ask(toggled(text, "tag", t)),
      })),
    ],
  };
}

/** What stands where there is no run yet. */
const noRuns = () =>
  empty(
    "No runs yet",
    "A run is the memory of one program from its start to its end, " +
      "with the lines that hold it. Record the first:",
    "hightide run -- python train.py",
    h(
      "p",
      { class: "hint" },
      "No GPU at hand? ",
      h("a", { href: "/imagine" }, "Run it on an imaginary one"),
      ". A snapshot of PyTorch's allocator? ",
      h("a", { href: "/snapshots" }, "Drop it here"),
      ".",
    ),
  );

/** How many runs there are, are found, selected and live, and which words are no condition. */
function totalText(all: Run[], found: number, picked: number, wrong: string[]): string {
  const live = all.filter((run) => run.state === "running").length,
    runs =
      found === all.length
        ? `${count(all.length)} run${all.length === 1 ? "" : "s"}`
        : `${count(found)} of ${count(all.length)} runs`;
  return [
    picked ? `${count(picked)} selected` : runs,
    ...wrong.map((text) => `“${text}” is no condition: they are as ${conditions}`),
    live > 0 && `${count(live)} live`,
    all.length >= most && `the newest ${count(most)} are listed`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** A field for tags in place of a button, which comes back when it is answered or left. */
function askTags(button: HTMLElement, runs: number, then: (words: string) => void): void {
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
