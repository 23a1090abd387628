// A snapshot: its blocks to explore, what is to be said of it by the views that the one-file report has, and the way to what other settings
// would do. And the list of those that are open.

import "../../style/jobs.css";
import type { Report } from "../../api";
import { bytes, count } from "../../lib/format";
import { complete } from "../../state/report";
import { views } from "../../views";
import { h, section } from "../../views/dom";
import { get, query } from "../api";
import { busy, empty, failure } from "../parts";
import { sameOn, type App } from "../state";
import type { Shown } from ".";
import { explorer } from "./explorer";

interface Opened { id: string; name: string; from: string; run?: string; size_bytes?: number; state: string; problem?: string; devices: { device: number; events: number; blocks: number; peak_bytes: number }[] }

export function snapshotPage(app: App, part: string): Shown {
  const asking = new AbortController(), id = decodeURIComponent(part), body = h("div", {}, busy());
  const ask = () => void get<Report>(query(`/snapshots/${encodeURIComponent(id)}/report`, { page: "true" }), asking.signal).then((raw) => {
    const report = complete(raw);
    document.title = `${report.run.name || id} · hightide`;
    body.replaceChildren(...views.flatMap((view) => view(report, app) ?? []));
  }, (e: unknown) => { if (!asking.signal.aborted) body.replaceChildren(failure(e, ask)); });
  const blocks = explorer(app, id, ask); // the report takes a server longer than the blocks, which are to be there first
  const whatIf = h("a", {}, "What if the allocator were set otherwise, or the GPU another?");
  app.follow(["window", "at", "block", "device"], (state) => { whatIf.setAttribute("href", sameOn(state, `/snapshots/${encodeURIComponent(id)}/whatif`)); }); // the same moment and block there
  return { element: h("div", { class: "job-page" }, h("p", { class: "facts" }, h("span", {}, whatIf)), blocks.element, body), close: () => { asking.abort(); blocks.close?.(); } };
}

export function snapshotsPage(_app: App): Shown {
  const asking = new AbortController(), list = h("div", {}, busy(3));
  const ask = () => void get<{ snapshots: Opened[] | null }>("/snapshots", asking.signal).then(({ snapshots }) => {
    list.replaceChildren(snapshots?.length ? table(snapshots) : empty("No snapshot is open", "A snapshot holds the blocks of PyTorch's allocator with their stacks. torch.cuda.memory._dump_snapshot writes one, and so does hightide run --snapshot-on exit.", "hightide ui snapshot.pickle"));
  }, (e: unknown) => { if (!asking.signal.aborted) list.replaceChildren(failure(e, ask)); });
  ask();
  return { element: h("div", { class: "job-page" }, h("h1", {}, "Snapshots"), section("snapshots", "Open", list)), close: () => asking.abort() };
}

function table(all: Opened[]): HTMLElement {
  const sum = (o: Opened, of: "events" | "blocks") => o.devices.reduce((n, d) => n + d[of], 0);
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Snapshots" }, h("table", {},
    h("thead", {}, h("tr", {}, ...["Snapshot", "From", "Size", "Events", "Blocks", "Peak", "Settings"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, ...all.map((o) => h("tr", {}, h("td", { class: "text" }, h("a", { href: `/snapshots/${encodeURIComponent(o.id)}` }, o.name)), h("td", { title: o.problem ?? "" }, o.state === "failed" ? `failed: ${o.problem ?? ""}` : o.from),
      h("td", { class: "number" }, o.size_bytes ? bytes(o.size_bytes) : "–"), h("td", { class: "number" }, o.devices.length ? count(sum(o, "events")) : "–"), h("td", { class: "number" }, o.devices.length ? count(sum(o, "blocks")) : "–"),
      h("td", { class: "number" }, o.devices.length ? bytes(Math.max(...o.devices.map((d) => d.peak_bytes))) : "–"), h("td", {}, h("a", { href: `/snapshots/${encodeURIComponent(o.id)}/whatif` }, "what if")))))));
}
