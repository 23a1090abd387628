// Two runs or snapshots beside each other: what the difference of their peaks is made of, as pictures and as a table; one file to share.

import "../../style/jobs.css";
import type { Label, Report } from "../../api";
import { courses, type Courses } from "../../lib/bothcourses";
import { ofReports, ofTable, type Difference } from "../../lib/difference";
import { bytes, commandLine, duration } from "../../lib/format";
import { complete } from "../../state/report";
import type { Store } from "../../state/store";
import { bothCourses } from "../../views/bothcourses";
import { badge, copier, h, section } from "../../views/dom";
import { flameDiff } from "../../views/flamediff";
import { selecting } from "../../views/tables";
import { waterfallPicture } from "../../views/waterfall";
import { get, Problem, query, report, runs as fetchRuns, type Run } from "../api";
import { busy, empty, failure } from "../parts";
import { peakOf } from "../runlist";
import type { App } from "../state";
import type { Shown } from ".";
import type { Opened } from "./snapshots";

const ways: [by: string, title: string][] = [["site", "device, by line"], ["module", "device, by module"], ["category", "device, by category"], ["composition", "host, by part"], ["sites", "host, by line"]];
const ofHost = (by: string) => by === "composition" || by === "sites";

/** What can be compared: a run, or a snapshot that is open. */
interface Choice { id: string; title: string; snapshot: boolean }

export function diffPage(app: App): Shown {
  const asking = new AbortController(), { a = "", b = "", by = "" } = app.get().params, body = h("div", {});
  const set = (change: Record<string, string>) => app.set({ params: Object.fromEntries(Object.entries({ ...app.get().params, ...change }).filter(([, v]) => v)) });
  const choose = (side: "a" | "b", title: string) => {
    const select = h("select", { "aria-label": title }, h("option", { value: "" }, "choose one"));
    select.addEventListener("change", () => set({ [side]: select.value }));
    return { select, element: h("label", { class: "choose" }, `${title} `, select) };
  };
  const before = choose("a", "Before"), after = choose("b", "After"), swap = h("button", { type: "button", class: "button", "aria-keyshortcuts": "s" }, "Swap");
  const find = h("input", { type: "search", placeholder: "Find a run or a snapshot", "aria-label": "What the lists offer (key /)" }), exchange = () => set({ a: b, b: a });
  let all: Choice[] = [];
  const fill = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean), some = all.filter((c) => words.every((w) => c.title.toLowerCase().includes(w) || c.id.includes(w)));
    for (const [pick, value] of [[before, a], [after, b]] as const) {
      const group = (title: string, of: Choice[]) => of.length > 0 && h("optgroup", { label: title }, ...of.map((c) => h("option", { value: c.id }, c.title)));
      const known = all.find((c) => c.id === value), kept = value && !some.some((c) => c.id === value) ? h("option", { value }, known?.title ?? value) : null;
      pick.select.replaceChildren(...[h("option", { value: "" }, some.length || !words.length ? "choose one" : "nothing is called so"), kept, group("Runs", some.filter((c) => !c.snapshot)), group("Snapshots", some.filter((c) => c.snapshot))].filter((e) => e instanceof Node));
      pick.select.value = value;
    }
  };
  find.addEventListener("input", fill);
  swap.addEventListener("click", exchange);
  void Promise.all([fetchRuns("", asking.signal, 1000), get<{ snapshots: Opened[] | null }>("/snapshots", asking.signal)]).then(([{ runs }, { snapshots }]) => {
    all = [...runs.map((r): Choice => ({ id: r.id, title: titled(r), snapshot: false })), ...(snapshots ?? []).map((o): Choice => ({ id: o.id, title: `${o.name}${o.devices[0] ? ` · ${bytes(Math.max(...o.devices.map((d) => d.peak_bytes)))}` : ""}`, snapshot: true }))];
    fill();
  }, (e: unknown) => { if (!asking.signal.aborted) body.replaceChildren(failure(e)); });
  const element = h("div", { class: "job-page" }, h("h1", {}, "What changed between two runs or snapshots?"), h("div", { class: "tools" }, find, before.element, after.element, swap), body);
  let over: Courses[] = [];
  const named = () => { dispatchEvent(new Event("hightide:named")); }; // what a moment is depends on the curves
  const ask = () => { body.replaceChildren(busy()); void show(app, a, b, by, asking.signal).then((made) => { over = made.over; body.replaceChildren(...made.parts); named(); }, (e: unknown) => { if (!asking.signal.aborted) body.replaceChildren(failure(e, ask)); }); };
  if (!a || !b) body.append(empty("Choose two", "Their peaks are compared: on the device block by block where both are snapshots or recorded one, on the host by what the peak was made of.", "hightide diff BEFORE AFTER"));
  else ask();
  return {
    element, close: () => asking.abort(), moments: () => (over.find((c) => c.along === app.get().params.along) ?? over[0])?.along ?? "event",
    keys: [{ title: "Compare", keys: [{ keys: ["s"], does: "swap before and after", run: exchange }, { keys: ["/"], does: "find a run or a snapshot", run: () => find.focus() }] }],
    commands: () => a || b ? [{ title: "Swap before and after", kind: "action", key: "s", run: exchange }] : [],
  };
}

const titled = (r: Run) => { const peak = peakOf(r); return `${r.name || r.id} · ${new Date(r.start_wall_ns / 1e6).toISOString().slice(0, 16).replace("T", " ")}${peak ? ` · ${bytes(peak)}` : ""}`; };

/** The report of a run, or of a snapshot: those have ids of sixteen digits, or of their run with a number. */
async function reportOf(id: string, signal: AbortSignal): Promise<Report> {
  const snapshot = () => get<Report>(`/snapshots/${encodeURIComponent(id)}/report`, signal), missing = (e: unknown) => e instanceof Problem && e.status === 404;
  if (!/^[0-9a-f]{16}$|-\d+$/.test(id)) return report(id, signal);
  return snapshot().catch((e: unknown) => { if (missing(e)) return report(id, signal); throw e; });
}

/** Whether there is an allocator's snapshot: a run's report does not carry its blocks, and its row says how many snapshots it keeps. */
const hasBlocks = async (id: string, r: Report, signal: AbortSignal) => (r.allocators?.length ?? 0) > 0 || ((await get<Run>(`/runs/${encodeURIComponent(id)}`, signal)).snapshots ?? 0) > 0;

async function show(app: App, a: string, b: string, by: string, signal: AbortSignal): Promise<{ over: Courses[]; parts: HTMLElement[] }> {
  const [p, q] = (await Promise.all([reportOf(a, signal), reportOf(b, signal)])).map(complete) as [Report, Report];
  const [hasA, hasB] = await Promise.all([hasBlocks(a, p, signal), hasBlocks(b, q, signal)]), without = !hasA ? p : !hasB ? q : null; // of which there is nothing to compare on the device
  const device = without ? new Problem(0, `${without.run.name || without.run.id} recorded no allocator snapshot; hightide run --snapshot-on exit records one.`)
    : await get<Report>(query("/diff", { a, b, by: by && !ofHost(by) ? by : "site" }), signal).then(complete, (e: unknown) => { if (e instanceof Problem && e.status < 500) return e; throw e; });
  const known = (way: string) => ofHost(way) ? ofReports(p, q, way) !== null : !(device instanceof Problem);
  const chosen = by && known(by) ? by : ways.map(([way]) => way).find(known) ?? "";
  const table = !ofHost(chosen) && !(device instanceof Problem) ? device.tables.find((t) => t.name === "diff") : undefined;
  const d: Difference | null = ofHost(chosen) ? ofReports(p, q, chosen) : table ? ofTable(table) : null;
  const name = `${p.run.name || p.run.id} → ${q.run.name || q.run.id}`;
  document.title = `${name} · hightide`;
  const switcher = h("div", { class: "switch", role: "group", "aria-label": "By" }, ...ways.filter(([way]) => known(way)).map(([way, title]) => {
    const button = h("button", { type: "button", "aria-pressed": String(way === chosen) }, title);
    button.addEventListener("click", () => app.set({ params: { ...app.get().params, by: way } }));
    return button;
  }));
  const line = commandLine(["hightide", "diff", a, b, ...(chosen && !ofHost(chosen) && chosen !== "site" ? ["--by", chosen] : [])]);
  const stacks = (r: Report, where: string) => r.stacks?.filter((s) => s.name === where).sort((x, y) => y.total_bytes - x.total_bytes)[0];
  const where = stacks(p, "device") && stacks(q, "device") ? "device" : p.stacks?.find((s) => stacks(q, s.name))?.name, flames = where ? [stacks(p, where)!, stacks(q, where)!] as const : null;
  const over = courses(p, q);
  return { over, parts: [
    section("difference", name, headline(d, p, q, table?.columns.find((c) => c.name === "a")?.label ?? ""), h("div", { class: "tools" }, switcher),
      device instanceof Problem && h("p", { class: "hint" }, `The device's blocks cannot be compared: ${device.message}`),
      d ? waterfallPicture(() => d, () => name, app) : h("p", { class: "nothing" }, "Neither run says what its peak was made of."),
      h("p", { class: "facts" }, !(device instanceof Problem) && h("span", {}, h("a", { href: query("/api/v1/diff/page", { a, b, by: ofHost(chosen) ? "site" : chosen }), download: "difference.html" }, "One file to share")), h("span", {}, [p, q].every((r) => r.run.id) && copier(line, { class: "command" }, h("code", {}, line))))),
    ...(over.length ? [bothCourses(over, name, app, along(app))] : []),
    ...(flames ? [section("flamediff", "Who holds more, who less", flameDiff(flames[0], flames[1], app))] : []),
    ...(table ? [section("difftable", table.title, table.note && h("p", { class: "hint" }, table.note), selecting(table, app).element)]
      : d ? [section("difftable", `By ${d.by}`, selecting({ name: "diff", title: `By ${d.by}`, columns: [{ name: "what", title: d.by }, { name: "delta", title: "Change", unit: "bytes" }, { name: "a", title: "Before", unit: "bytes" }, { name: "b", title: "After", unit: "bytes" }],
        rows: d.parts.map((x) => [x.name, x.after - x.before, x.before, x.after] as (string | number)[]).sort((x, y) => Math.abs(Number(y[1])) - Math.abs(Number(x[1]))) }, app).element)] : []),
  ] };
}

/** The axis of the curves, as the address has it. */
const along = (app: App): Store<{ along: string }> => {
  const get = () => ({ along: app.get().params.along ?? "" });
  return { get, set: (to) => app.set({ params: { ...app.get().params, ...to } }), follow: (_, then) => app.follow(["params"], () => then(get())) };
};

function headline(d: Difference | null, p: Report, q: Report, label: Label): HTMLElement {
  const change = d ? d.after - d.before : 0;
  const rows: [string, string, string, Label[]][] = [];
  if (d) rows.push(["Peak compared", bytes(d.before), `${bytes(d.after)} (${change === 0 ? "the same" : `${change < 0 ? "−" : "+"}${bytes(Math.abs(change))}`})`, [label]]);
  const add = (title: string, a: number | undefined, b: number | undefined, show: (v: number) => string, ...labels: Label[]) => { if (a !== undefined && b !== undefined && (a || b)) rows.push([title, show(a), show(b), labels]); };
  add("Peak RSS", p.headline.peak.host_rss_bytes, q.headline.peak.host_rss_bytes, bytes, "measured");
  add("Peak on the device", p.headline.peak.device_used_bytes, q.headline.peak.device_used_bytes, bytes, p.imagined ? "imagined" : "measured", q.imagined ? "imagined" : "measured");
  if (!p.imagined && !q.imagined) { // an imagined one's times say nothing of the program's
    add("Step time", p.headline.step_time_ns, q.headline.step_time_ns, duration, "measured");
    add("Duration", p.headline.duration_ns, q.headline.duration_ns, duration, "measured");
  }
  return h("dl", { class: "figures" }, ...rows.map(([k, a, b, labels]) => h("div", {}, h("dt", {}, k, ...[...new Set(labels)].flatMap((l) => l ? [" ", badge(l)] : [])), h("dd", {}, `${a} → ${b}`))));
}
