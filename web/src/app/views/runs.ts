// The list of runs: searched, ordered, compared, deleted; rows follow runs that are recorded just now.

import "../../style/runs.css";
import { bytes, commandLine, count, duration, wallClock } from "../../lib/format";
import { elsewhere } from "../../draw/paint";
import { badge, h } from "../../views/dom";
import { post, query, runs as fetchRuns, type Run } from "../api";
import { toast } from "../frame/toast";
import { busy, empty, failure } from "../parts";
import { chosen, outcome, peakOf, sortOf, sorts, tagsOf, when, type Asked } from "../runlist";
import { go, type App } from "../state";
import { stream } from "../stream";
import type { Shown } from ".";

const outcomes = ["live", "done", "failed", "cut off"];

export function runsPage(app: App): Shown {
  const asking = new AbortController(), known = new Map<string, Run>(), picked = new Set<string>(), hidden = new Set<string>();
  const { outcome: ended = "", sort = "" } = app.get().params;
  let asked: Asked = { words: app.get().search, outcome: ended, verb: "", tag: "", sort };
  const search = h("input", { type: "search", placeholder: "Search by name, command or tag", "aria-label": "Search the runs (key /)", value: asked.words });
  const filter = h("select", { "aria-label": "How it ended" }, h("option", { value: "" }, "All runs"), ...outcomes.map((o) => h("option", o === ended ? { value: o, selected: "" } : { value: o }, o)));
  const compare = h("button", { type: "button", class: "button" }, "Compare"), drop = h("button", { type: "button", class: "button" }, "Delete");
  const total = h("span", { class: "hint", role: "status" }), list = h("div", {}, busy());

  const draw = () => {
    const all = [...known.values()].filter((run) => !hidden.has(run.id)), shown = chosen(all, asked);
    total.textContent = picked.size ? `${picked.size} selected` : shown.length === all.length ? `${count(all.length)} run${all.length === 1 ? "" : "s"}` : `${count(shown.length)} of ${count(all.length)} runs`;
    compare.disabled = picked.size !== 2;
    compare.title = picked.size === 2 ? "" : "Select two runs";
    drop.disabled = picked.size === 0;
    list.replaceChildren(all.length === 0 ? empty("No runs yet", "A run is the memory of one program from its start to its end, with the lines that hold it. Record the first:", "hightide run -- python train.py")
      : shown.length === 0 ? empty("No run matches", "Search for fewer words, or show all runs.") : table(shown, asked, picked, { order, pick: (id, on) => { if (on) picked.add(id); else picked.delete(id); draw(); } }));
  };
  const ask = (change: Partial<Asked>) => {
    const next = { ...asked, ...change };
    app.set({ search: next.words, params: Object.fromEntries(Object.entries({ outcome: next.outcome, sort: next.sort }).filter(([, v]) => v)) });
  };
  const order = (name: string) => { const now = sortOf(asked.sort); ask({ sort: now.name === name && now.down === sorts[name]!.down ? `-${name}` : name }); };
  const deleting = () => { // sent when the time to undo is over: a page that is closed before deletes nothing
    const ids = [...picked].filter((id) => known.get(id)?.state !== "running");
    if (ids.length < picked.size) toast("A run that is still recorded cannot be deleted.", { bad: true });
    picked.clear();
    for (const id of ids) hidden.add(id);
    const back = () => { for (const id of ids) hidden.delete(id); draw(); };
    if (ids.length) toast(`${count(ids.length)} run${ids.length === 1 ? "" : "s"} deleted`, { undo: back, then: () => void post("/runs/delete", { ids }).catch((e: Error) => { toast(e.message, { bad: true }); back(); }) });
    draw();
  };
  search.addEventListener("input", () => ask({ words: search.value }));
  filter.addEventListener("change", () => ask({ outcome: filter.value }));
  compare.addEventListener("click", () => { const [b = "", a = ""] = chosen([...known.values()].filter((r) => picked.has(r.id)), { ...asked, sort: "" }).map((r) => r.id); go(app, "/diff", { a, b }); });
  drop.addEventListener("click", deleting);
  addEventListener("keydown", (e) => { if (e.key === "/" && !elsewhere(e)) { e.preventDefault(); search.focus(); } }, { signal: asking.signal });
  list.addEventListener("keydown", (e) => step(list, e));

  let loaded = false;
  app.follow(["search", "params"], ({ search: words, params }) => { // the address says what is asked for, whoever changed it
    asked = { ...asked, words, outcome: params.outcome ?? "", sort: params.sort ?? "" };
    if (search.value !== words) search.value = words;
    filter.value = asked.outcome;
    if (loaded) draw();
  });
  const load = () => void fetchRuns("", asking.signal).then(({ runs }) => { loaded = true; known.clear(); for (const run of runs) known.set(run.id, run); draw(); }, (e: unknown) => { if (!asking.signal.aborted) list.replaceChildren(failure(e, load)); });
  const live = stream("/live", "/status", {
    open: load,
    runs: ({ runs, removed }: { runs: Run[] | null; removed: string[] | null }) => { for (const run of runs ?? []) known.set(run.id, run); for (const id of removed ?? []) { known.delete(id); picked.delete(id); } draw(); },
  });
  const element = h("section", { id: "runs", "aria-labelledby": "runs-title" }, h("h1", { id: "runs-title" }, "Runs"), h("div", { class: "tools" }, search, filter, compare, drop, total), list);
  return { element, close: () => { asking.abort(); live.close(); } };
}

/** j and k go through the rows, x selects, Enter opens. */
function step(list: HTMLElement, e: KeyboardEvent): void {
  const rows = [...list.querySelectorAll<HTMLElement>("tbody a.name")], at = rows.findIndex((r) => r.closest("tr")?.contains(document.activeElement));
  if (e.key === "j" || e.key === "k") rows[Math.max(0, Math.min(rows.length - 1, at + (e.key === "j" ? 1 : -1)))]?.focus();
  if (e.key === "x") { const id = rows[at]?.dataset.id; rows[at]?.closest("tr")?.querySelector<HTMLInputElement>("input")?.click(); if (id) list.querySelector<HTMLElement>(`a[data-id="${CSS.escape(id)}"]`)?.focus(); }
}

interface Doing { order: (name: string) => void; pick: (id: string, on: boolean) => void }

function table(shown: Run[], asked: Asked, picked: Set<string>, doing: Doing): HTMLElement {
  const now = sortOf(asked.sort);
  const heads = Object.entries(sorts).map(([name, { title }]) => {
    const button = h("button", { type: "button" }, title);
    button.addEventListener("click", () => doing.order(name));
    return [name, h("th", { scope: "col", class: name === "name" ? "" : "number", ...(now.name === name ? { "aria-sort": now.down ? "descending" : "ascending" } : {}) }, button)] as const;
  });
  const head = Object.fromEntries(heads), most = Math.max(1, ...shown.map((r) => peakOf(r) ?? 0));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "List of runs" }, h("table", { class: "runs" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Selected")), head.name!, h("th", { scope: "col" }, "Ended"), head.peak!, head.findings!, head.steps!, head.duration!, head.started!)),
    h("tbody", {}, ...shown.map((run) => row(run, most, picked.has(run.id), doing)))));
}

function row(run: Run, most: number, isPicked: boolean, doing: Doing): HTMLElement {
  const box = h("input", { type: "checkbox", "aria-label": `Select ${run.name || run.id}` }), peak = peakOf(run), onDevice = (run.peak_device_used_bytes ?? run.peak_reserved_bytes ?? run.peak_allocated_bytes) !== undefined, how = outcome(run), command = commandLine(run.command ?? []);
  box.checked = isPicked;
  box.addEventListener("change", () => doing.pick(run.id, box.checked));
  const ended = how === "done" ? "good" : how === "failed" ? "bad" : how === "live" ? "live" : "unsure", words = how === "failed" ? run.ooms ? "out of memory" : run.signal ? `signal ${run.signal}` : `exit ${run.exit_code}` : how;
  return h("tr", { class: isPicked ? "picked" : "" }, h("td", {}, box),
    h("td", { class: "text" }, h("a", { class: "name", href: `/runs/${encodeURIComponent(run.id)}`, "data-id": run.id }, run.name || run.id), run.label !== "measured" && badge(run.label ?? ""), ...tagsOf(run).map((t) => h("a", { class: "tag", href: query("/", { q: t }) }, t)), h("small", { title: command }, command)),
    h("td", {}, h("span", { class: `outcome ${ended}` }, words)),
    h("td", { class: "number peak" }, h("span", {}, peak === undefined ? "–" : `${bytes(peak)} ${onDevice ? "device" : "host"}`), h("i", { class: "meter", style: `width:${Math.round((peak ?? 0) / most * 100)}%` })),
    h("td", { class: "number" }, run.findings === undefined ? "–" : count(run.findings)), h("td", { class: "number" }, run.steps ? count(run.steps) : "–"),
    h("td", { class: "number" }, duration(run.duration_ns)), h("td", { class: "number", title: wallClock(run.start_wall_ns) }, when(run.start_wall_ns, Date.now())));
}
