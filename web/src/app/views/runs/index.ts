// The list of runs: searched, filtered, ordered, renamed, tagged, compared, deleted; rows follow
// runs that are recorded just now.

import type { Run } from "../../../api";
import "./runs.css";
import { count } from "../../../lib/format";
import { explainer, h } from "../../../views/dom";
import { post, runs as fetchRuns } from "../../api";
import { doubt } from "../../frame/away";
import type { KeyGroup } from "../../frame/keys";
import type { Command } from "../../frame/palette";
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
import { askTags, edit, tagAll } from "./edit";
import { finder } from "./found";
import { sparks } from "./sparks";
import { runTable } from "./table";
import { showFilters } from "./filters";

const most = 10_000;

/** The rows that are runs. */
const singles = (rows: Row[]): Run[] => rows.filter((r) => !r.trials);

export function runsPage(app: App): Shown {
  const list = new List(app);
  return {
    element: list.element,
    close: () => list.close(),
    keys: list.keys(),
    commands: () => list.commands(),
  };
}

const button = (title: string, key: string, act: () => void): HTMLButtonElement => {
  const b = h("button", { type: "button", class: "button", "aria-keyshortcuts": key }, title);
  b.addEventListener("click", act);
  return b;
};

/** Says of what cannot be deleted why: files elsewhere, or runs that go on. */
function warn(files: number, others: number): void {
  if (files)
    toast("A recording outside the data directory is not deleted here: delete its file.", {
      bad: true,
    });
  else if (others) toast("A run that is still recorded cannot be deleted.", { bad: true });
}

class List {
  readonly element: HTMLElement;
  private readonly asking = new AbortController();
  private readonly known = new Map<string, Run>();
  private readonly picked = new Set<string>();
  private readonly hidden = new Set<string>();
  private shown: Row[] = [];
  private columns: string[];
  private sort: string;
  private text: string;
  private loaded = false;
  private last = "";
  private opened = false;
  private readonly search: HTMLInputElement;
  private readonly compare = button("Compare", "c", () => void this.comparing());
  private readonly retag = button("Tag", "T", () => this.tagging());
  private readonly drop = button("Delete", "Delete", () => this.deleting());
  private readonly total = h("span", { class: "hint", role: "status" });
  private readonly chips = h("div", {
    class: "filters",
    role: "group",
    "aria-label": "Filters",
  });
  private readonly waiting = busy();
  private readonly place = h("div", { hidden: "" });
  private readonly finder = finder(() => this.draw());
  private readonly chooser = columnChooser((names) =>
    this.ask(this.text, { columns: columnsText(names) }),
  );
  private readonly small = sparks((ids) => this.table.again(ids));
  private readonly table = runTable({
    order: (name) => this.order(name),
    pick: (id, on, range) => this.pick(id, on, range),
    pickAll: (on) => this.pickAll(on),
    tag: (value) => this.ask(toggled(this.text, "tag", value)),
    edit: (id, what) => this.editing(what, id),
    spark: (run) => this.small.of(run),
    view: (runs) => this.small.want(this.columns.includes("curve") ? singles(runs) : []),
  });
  private readonly live: { close(): void };
  private readonly app: App;

  constructor(app: App) {
    this.app = app;
    const { search: text, params } = app.get();
    [this.text, this.sort, this.columns] = [text, params.sort ?? "", columnsOf(params.columns)];
    this.search = searchField(text);
    this.element = this.made();
    this.search.addEventListener("input", () => this.ask(this.search.value));
    this.search.addEventListener("keydown", (e) => {
      if (e.key !== "ArrowDown" && e.key !== "Enter") return;
      e.preventDefault();
      this.table.focus(0);
    });
    app.follow(["search", "params"], ({ search: words, params }) => {
      // the address says what is asked for, whoever changed it
      [this.text, this.sort, this.columns] = [words, params.sort ?? "", columnsOf(params.columns)];
      if (this.search.value !== words) this.search.value = words;
      if (this.loaded) this.draw();
    });
    this.live = stream("/live", "/status", {
      open: this.load,
      problem: doubt,
      runs: ({ runs, removed }: { runs: Run[] | null; removed: string[] | null }) => {
        for (const run of runs ?? []) this.known.set(run.id, run);
        for (const id of removed ?? []) {
          this.known.delete(id);
          this.picked.delete(id);
        }
        this.finder.again();
        if (this.loaded) this.draw();
      },
    });
  }

  close(): void {
    this.asking.abort();
    for (const part of [this.live, this.small, this.table, this.finder]) part.close();
  }

  private made(): HTMLElement {
    const title = h("h1", { id: "runs-title" }, "Runs"),
      tools = [this.search, this.compare, this.retag, this.drop, this.chooser.element];
    return h(
      "section",
      { id: "runs", "aria-labelledby": "runs-title" },
      h("div", { class: "titled" }, title, explainer("runs", "Runs")),
      h("div", { class: "tools" }, ...tools),
      ...[this.chips, this.total, this.waiting, this.place],
    );
  }

  keys(): KeyGroup[] {
    return [
      {
        title: "The list of runs",
        keys: [
          {
            keys: ["/"],
            does: "search",
            run: () => {
              this.search.focus();
              this.search.select();
            },
          },
          { keys: ["j"], does: "the next run", run: () => this.step(1) },
          { keys: ["k"], does: "the run before", run: () => this.step(-1) },
          { keys: ["Enter"], does: "open it" },
          { keys: ["x"], does: "select it", run: this.click },
          { keys: ["r", "F2"], does: "rename it", run: () => this.editing("name") },
          { keys: ["T"], does: "its tags, or those of all selected", run: this.tagging },
          { keys: ["c"], does: "compare the two selected", run: this.comparing },
          {
            keys: ["Delete"],
            does: "delete what is selected",
            run: () => {
              if (this.picked.size) this.deleting();
            },
          },
        ],
      },
    ];
  }

  commands(): Command[] {
    return [
      ...(this.picked.size === 2
        ? [
            {
              title: "Compare the two selected runs",
              kind: "action" as const,
              key: "c",
              run: this.comparing,
            },
          ]
        : []),
      ...(this.picked.size
        ? [
            {
              title: "Delete the selected runs",
              kind: "action" as const,
              key: "Delete",
              run: this.deleting,
            },
            {
              title: "Tag the selected runs",
              kind: "action" as const,
              key: "T",
              run: this.tagging,
            },
          ]
        : []),
      ...(["live", "failed"] as const)
        .filter((s) => [...this.known.values()].some((r) => outcome(r) === s))
        .map((s) => ({
          title: `Only ${s} runs`,
          kind: "action" as const,
          run: () => this.ask(toggled(this.text, "state", s)),
        })),
      ...[...new Set([...this.known.values()].flatMap(tagsOf))].map((t) => ({
        title: `Only runs with ${t}`,
        kind: "action" as const,
        run: () => this.ask(toggled(this.text, "tag", t)),
      })),
    ];
  }

  private readonly ask = (search: string, change: Record<string, string> = {}) =>
    this.app.set({
      search,
      params: Object.fromEntries(
        Object.entries({ ...this.app.get().params, ...change }).filter(([, v]) => v),
      ),
    });

  private pick(id: string, on: boolean, range: boolean): void {
    const [a, b] = [
      this.shown.findIndex((r) => r.id === this.last),
      this.shown.findIndex((r) => r.id === id),
    ];
    for (const run of range && a >= 0
      ? singles(this.shown.slice(Math.min(a, b), Math.max(a, b) + 1))
      : [{ id }])
      if (on) this.picked.add(run.id);
      else this.picked.delete(run.id);
    this.last = id;
    this.draw();
  }

  private pickAll(on: boolean): void {
    for (const run of singles(this.shown))
      if (on) this.picked.add(run.id);
      else this.picked.delete(run.id);
    this.draw();
  }

  private order(name: string): void {
    const now = sortOf(this.sort);
    this.ask(this.text, {
      sort: now.name === name && now.down === columnOf(name)!.down ? `-${name}` : name,
    });
  }

  private readonly changed = (run: Run) => {
    this.known.set(run.id, { ...this.known.get(run.id), ...run });
    this.draw();
  };

  private draw() {
    const query = readQuery(this.text),
      place = this.finder.of(query),
      rows = place === null ? this.known : new Map([...(place?.runs ?? []), ...this.known]),
      all = [...rows.values()].filter((run) => !this.hidden.has(run.id));
    for (const id of this.picked)
      if (!this.known.has(id) || this.hidden.has(id)) this.picked.delete(id);
    const among = place === null ? all : all.filter((run) => place?.runs.has(run.id)),
      found = chosen(among, query, this.sort);
    this.shown = chosen(grouped(found, query), readQuery(""), this.sort);
    this.total.textContent = totalText(all, found.length, this.picked.size, [
      ...query.wrong.map((text) => `“${text}” is no condition: they are as ${conditions}`),
      ...(place === undefined ? ["looking"] : place?.said ? [place.said] : []),
    ]);
    this.compare.disabled = this.picked.size !== 2;
    this.compare.title = this.picked.size === 2 ? "Compare the two (key c)" : "Select two runs";
    this.retag.disabled = this.drop.disabled = this.picked.size === 0;
    showFilters(this.chips, facets(among, query), this.opened, {
      toggle: (part, value) => this.ask(toggled(this.text, part, value)),
      open: () => {
        this.opened = !this.opened;
        this.draw();
      },
    });
    this.chooser.show(
      this.columns,
      [...new Set(all.flatMap((r) => Object.keys(r.tags ?? {})))].sort(),
    );
    this.show(all.length);
  }

  /** Shows the table, or what stands in its place. */
  private show(all: number): void {
    const content =
      all === 0
        ? noRuns()
        : this.shown.length === 0
          ? empty("No run matches", "Search for fewer words, or take a filter away.")
          : this.table.element;
    this.waiting.remove();
    this.place.hidden = false;
    if (this.place.firstElementChild !== content) this.place.replaceChildren(content);
    if (content === this.table.element)
      this.table.show({
        runs: this.shown,
        columns: this.columns,
        sort: this.sort,
        picked: this.picked,
      });
  }

  private editing(
    what: "name" | "tags",
    id = this.shown[this.table.at()]?.id ?? (this.picked.size === 1 ? [...this.picked][0]! : ""),
  ) {
    const run = this.known.get(id),
      cell = this.table.cell(id);
    if (!run || !cell) return void toast("Choose a run first: j and k go through the rows.");
    edit(cell, run, what, this.changed, () => {
      this.draw();
      this.table.focus(this.shown.findIndex((r) => r.id === id));
    });
  }

  private readonly tagging = () => {
    // of several: what is added and removed; of one: all it has
    if (this.picked.size < 2) return this.editing("tags");
    this.retag.hidden = true;
    askTags(
      this.retag,
      this.picked.size,
      (words) =>
        void tagAll(
          [...this.picked].flatMap((id) => this.known.get(id) ?? []),
          words,
          this.changed,
        ),
    );
  };

  private readonly comparing = () => {
    if (this.picked.size !== 2) return void toast("Select two runs to compare them: x selects.");
    const [b = "", a = ""] = chosen(
      [...this.known.values()].filter((r) => this.picked.has(r.id)),
      readQuery(""),
      "",
    ).map((r) => r.id);
    go(this.app, "/diff", { a, b });
  };

  private readonly deleting = () => {
    // sent when the time to undo is over: a page that is closed before deletes nothing
    const files = [...this.picked].filter((id) => this.known.get(id)?.from === "file"),
      ids = [...this.picked].filter(
        (id) => this.known.get(id)?.state !== "running" && !files.includes(id),
      );
    warn(files.length, this.picked.size - ids.length);
    const first = this.shown.findIndex((r) => ids.includes(r.id)),
      focused = this.place.contains(document.activeElement) || document.activeElement === this.drop;
    this.picked.clear();
    for (const id of ids) this.hidden.add(id);
    if (ids.length) this.remove(ids);
    this.draw();
    if (!focused || first < 0) return; // what had the focus is gone, or can do nothing more
    if (this.shown.length > 0) this.table.focus(Math.min(first, this.shown.length - 1));
    else this.search.focus();
  };

  /** Deletes runs when the time to undo is over. */
  private remove(ids: string[]): void {
    const back = () => {
      for (const id of ids) this.hidden.delete(id);
      this.draw();
    };
    toast(`${count(ids.length)} run${ids.length === 1 ? "" : "s"} deleted`, {
      undo: back,
      then: () =>
        void post("/runs/delete", { ids }).catch((e: Error) => {
          toast(e.message, { bad: true });
          back();
        }),
    });
  }

  private readonly load = () =>
    void fetchRuns("", this.asking.signal, most).then(
      ({ runs }) => {
        this.loaded = true;
        const before = new Map(this.known);
        this.known.clear();
        for (const run of runs) {
          const old = before.get(run.id);
          this.known.set(run.id, old && JSON.stringify(old) === JSON.stringify(run) ? old : run);
        }
        this.draw();
      },
      (e: unknown) => {
        if (this.asking.signal.aborted) return;
        this.waiting.remove();
        this.place.hidden = false;
        this.place.replaceChildren(failure(e, this.load));
      },
    );

  private readonly step = (by: number) =>
    this.table.focus(Math.max(0, Math.min(this.shown.length - 1, this.table.at() + by)));

  private readonly click = () => {
    const run = this.shown[this.table.at()];
    if (run && !run.trials) {
      if (this.picked.has(run.id)) this.picked.delete(run.id);
      else this.picked.add(run.id);
      this.last = run.id;
      this.draw();
    }
  };
}

const searchField = (value: string): HTMLInputElement =>
  h("input", {
    type: "search",
    placeholder: "Search names, commands, tags; state:failed, peak>1GiB, line:train.py:12",
    "aria-label": "Search the runs (key /)",
    value,
    spellcheck: "false",
  });

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

/** How many runs there are, are found, selected and live, and what else there is to say. */
function totalText(all: Run[], found: number, picked: number, more: string[]): string {
  const live = all.filter((run) => run.state === "running").length,
    runs =
      found === all.length
        ? `${count(all.length)} run${all.length === 1 ? "" : "s"}`
        : `${count(found)} of ${count(all.length)} runs`;
  return [
    picked ? `${count(picked)} selected` : runs,
    ...more,
    live > 0 && `${count(live)} live`,
    all.length >= most && `the newest ${count(most)} are listed`,
  ]
    .filter(Boolean)
    .join(", ");
}
