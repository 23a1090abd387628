// Two runs beside each other: what the difference of their peaks is made of, as pictures and as a table; one file to share.

import "../../style/jobs.css";
import uPlot from "uplot";
import type { Report } from "../../api";
import { byteAxis, chart, timeAxis } from "../../draw/chart";
import { theme } from "../../draw/theme";
import { align } from "../../lib/columns";
import { ofReports, ofTable, type Difference } from "../../lib/difference";
import { bytes, commandLine, duration } from "../../lib/format";
import { fromZero } from "../../lib/scales";
import { curves, type Curve } from "../../state/curves";
import { complete } from "../../state/report";
import { copier, h, section } from "../../views/dom";
import { flameDiff } from "../../views/flamediff";
import { tableBody } from "../../views/tables";
import { waterfallPicture } from "../../views/waterfall";
import { get, Problem, query, report } from "../api";
import { busy, empty, failure } from "../parts";
import type { App } from "../state";
import type { Shown } from ".";

const ways: [by: string, title: string][] = [["site", "device, by line"], ["module", "device, by module"], ["category", "device, by category"], ["composition", "host, by part"], ["sites", "host, by line"]];
const ofHost = (by: string) => by === "composition" || by === "sites";

export function diffPage(app: App): Shown {
  const asking = new AbortController(), { a = "", b = "", by = "" } = app.get().params, body = h("div", {});
  const choose = (side: "a" | "b", title: string) => {
    const select = h("select", { "aria-label": title }, h("option", { value: "" }, "choose a run"));
    select.addEventListener("change", () => app.set({ params: { ...app.get().params, [side]: select.value } }));
    return { select, element: h("label", { class: "choose" }, `${title} `, select) };
  };
  const before = choose("a", "Before"), after = choose("b", "After"), swap = h("button", { type: "button", class: "button" }, "Swap");
  swap.addEventListener("click", () => app.set({ params: { ...app.get().params, a: b, b: a } }));
  void get<{ runs: Row[] | null }>(query("/runs", { limit: 1000 }), asking.signal).then(({ runs }) => {
    const all = runs ?? [];
    for (const [pick, value] of [[before, a], [after, b]] as const) {
      pick.select.append(...all.map((r) => h("option", { value: r.id }, titled(r))));
      if (value && !all.some((r) => r.id === value)) pick.select.append(h("option", { value }, value));
      pick.select.value = value;
    }
  }, (e: unknown) => { if (!asking.signal.aborted) body.replaceChildren(failure(e)); });
  const element = h("div", { class: "job-page" }, h("h1", {}, "What changed between two runs?"), h("div", { class: "tools" }, before.element, after.element, swap), body);
  if (!a || !b) body.append(empty("Choose two runs", "Their peaks are compared: on the device block by block where both recorded a snapshot, on the host by what the peak was made of.", "hightide diff BEFORE AFTER"));
  else { body.append(busy()); void show(app, a, b, by, asking.signal).then((parts) => body.replaceChildren(...parts), (e: unknown) => { if (!asking.signal.aborted) body.replaceChildren(failure(e)); }); }
  return { element, close: () => asking.abort() };
}

interface Row { id: string; name?: string; start_wall_ns: number; peak_host_rss_bytes?: number }

const titled = (r: Row) => `${r.name || r.id} · ${new Date(r.start_wall_ns / 1e6).toISOString().slice(0, 16).replace("T", " ")}${r.peak_host_rss_bytes ? ` · ${bytes(r.peak_host_rss_bytes)}` : ""}`;

async function show(app: App, a: string, b: string, by: string, signal: AbortSignal): Promise<HTMLElement[]> {
  const [p, q] = (await Promise.all([report(a, signal), report(b, signal)])).map(complete) as [Report, Report];
  const without = [p, q].find((r) => !r.allocators?.length); // of which there is nothing to compare on the device
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
  const two = sameCurve(p, q);
  return [
    section("difference", name, headline(d, p, q), h("div", { class: "tools" }, switcher),
      device instanceof Problem && h("p", { class: "hint" }, `The device's blocks cannot be compared: ${device.message}`),
      d ? waterfallPicture(() => d, () => name) : h("p", { class: "nothing" }, "Neither run says what its peak was made of."),
      h("p", { class: "facts" }, !(device instanceof Problem) && h("span", {}, h("a", { href: query("/api/v1/diff/page", { a, b, by: ofHost(chosen) ? "site" : chosen }), download: "difference.html" }, "One file to share")), h("span", {}, copier(line, { class: "command" }, h("code", {}, line))))),
    ...(two ? [course(two)] : []),
    ...(flames ? [section("flamediff", "Who holds more, who less", flameDiff(flames[0], flames[1]))] : []),
    ...(table ? [section("difftable", table.title, table.note && h("p", { class: "hint" }, table.note), tableBody(table))]
      : d ? [section("difftable", `By ${d.by}`, tableBody({ name: "diff", title: `By ${d.by}`, columns: [{ name: "what", title: d.by }, { name: "delta", title: "Change", unit: "bytes" }, { name: "a", title: "Before", unit: "bytes" }, { name: "b", title: "After", unit: "bytes" }],
        rows: d.parts.map((x) => [x.name, x.after - x.before, x.before, x.after] as (string | number)[]).sort((x, y) => Math.abs(Number(y[1])) - Math.abs(Number(x[1]))) }))] : []),
  ];
}

function headline(d: Difference | null, p: Report, q: Report): HTMLElement {
  const change = d ? d.after - d.before : 0;
  const rows: [string, string, string][] = [];
  if (d) rows.push(["Peak compared", bytes(d.before), `${bytes(d.after)} (${change === 0 ? "the same" : `${change < 0 ? "−" : "+"}${bytes(Math.abs(change))}`})`]);
  const add = (title: string, a: number | undefined, b: number | undefined, show: (v: number) => string) => { if (a !== undefined && b !== undefined && (a || b)) rows.push([title, show(a), show(b)]); };
  add("Peak RSS", p.headline.peak.host_rss_bytes, q.headline.peak.host_rss_bytes, bytes);
  add("Peak on the device", p.headline.peak.device_used_bytes, q.headline.peak.device_used_bytes, bytes);
  add("Step time", p.headline.step_time_ns, q.headline.step_time_ns, duration);
  add("Duration", p.headline.duration_ns, q.headline.duration_ns, duration);
  return h("dl", { class: "figures" }, ...rows.map(([k, a, b]) => h("div", {}, h("dt", {}, k), h("dd", {}, `${a} → ${b}`))));
}

/** The first curve of one run that the other has too; null: there is none. */
function sameCurve(p: Report, q: Report): [Curve, Curve] | null {
  const others = curves(q, 0).filter((c) => !c.limit);
  for (const c of curves(p, 0)) { const other = others.find((o) => o.name === c.name); if (!c.limit && other) return [c, other]; }
  return null;
}

/** A curve that both have, from each run's beginning. */
function course(two: [Curve, Curve]): HTMLElement {
  const box = h("div", { class: "chart", role: "img", "aria-label": `${two[0].title} of both runs, each from its own beginning` });
  queueMicrotask(() => chart(box, 240, () => {
    const colour = theme(), { x, ys } = align([two[0], two[1]]);
    const options: Omit<uPlot.Options, "width" | "height"> = { padding: [10, 20, 0, 0], cursor: { y: false, drag: { x: false, y: false } }, scales: { x: { time: false }, y: { range: (_, low, high) => fromZero(low, high) } }, axes: [timeAxis(), byteAxis()], legend: { show: false },
      series: [{}, { label: "before", stroke: colour("curve-7"), width: 1.75, spanGaps: true }, { label: "after", stroke: colour("curve-0"), width: 1.75, spanGaps: true }] };
    return { options, data: [x.map((t) => t / 1e9), ...ys] as uPlot.AlignedData };
  }));
  return section("bothcourses", "Both over time", box, h("p", { class: "phases" }, h("span", {}, h("i", { style: "background:var(--curve-7)" }), `before: ${two[0].title}`), h("span", {}, h("i", { style: "background:var(--curve-0)" }), `after: ${two[1].title}`)));
}
