import type { Label, Report } from "../api";
import { h, rich } from "../lib/dom";
import { bytes, count, duration } from "../lib/format";

/** Who ran what, the answer in a sentence, and the figures behind it. */
export function header(report: Report): HTMLElement {
  const { run, headline } = report;
  const toggle = h("button", { type: "button", class: "toggle", title: "Light or dark (t)", "aria-label": "Light or dark" }, "◐");
  toggle.addEventListener("click", () => window.dispatchEvent(new Event("hightide:toggle")));
  const facts = [run.host.name, `${run.host.cpus} CPUs`, run.host.memory_bytes !== undefined && `${bytes(run.host.memory_bytes)} memory`,
    ...(run.host.gpus ?? []).map((g) => g.name), ...new Set(report.processes.flatMap((p) => Object.entries(p.frameworks ?? {}).map(([k, v]) => `${k} ${v}`))),
    run.git && `${run.git.branch ?? ""} ${run.git.commit.slice(0, 9)}${run.git.dirty ? " (changed)" : ""}`.trim()];
  return h("header", {},
    h("div", { class: "bar" }, h("strong", {}, "hightide"), h("span", {}, run.name || run.id), badge(run.label), toggle),
    h("h1", {}, ...rich(headline.verdict)),
    h("code", { class: "command" }, (run.command ?? []).join(" ")),
    h("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    cards(report));
}

export const badge = (label: Label) => label ? h("span", { class: `badge ${label}` }, label) : null;

function cards(report: Report): HTMLElement {
  const { peak, ...head } = report.headline;
  const card = (title: string, value: string | null, note = "", label: Label = "") =>
    value === null ? null : h("div", { class: "card" }, h("span", {}, title), h("b", {}, value), h("small", {}, note, label && note ? " · " : "", label));
  const size = (v: number | undefined) => v === undefined ? null : bytes(v);
  const outcome = head.signal !== undefined ? `signal ${head.signal}` : head.exit_code !== undefined ? `exit ${head.exit_code}` : head.complete ? "ended" : "cut off";
  return h("div", { class: "cards" },
    card("Host peak", size(peak.host_pss_bytes ?? peak.host_rss_bytes), peak.host_pss_bytes !== undefined ? `PSS, all processes${peak.host_rss_bytes !== undefined ? `; RSS ${bytes(peak.host_rss_bytes)}` : ""}` : "RSS, all processes", "measured"),
    card("Heap peak", size(peak.heap_bytes), "live allocations", "sampled"),
    card("Device peak", size(peak.device_used_bytes), "in use, by anyone", peak.label),
    card("Allocated", size(peak.allocated_bytes), "by tensors", peak.label),
    card("Reserved", size(peak.reserved_bytes), "by the allocator", peak.label),
    card("Growth", head.growth_bytes_per_step === undefined ? null : `${bytes(head.growth_bytes_per_step)}`, "per step"),
    card("Steps", head.steps ? count(head.steps) : null, head.step_time_ns !== undefined ? `${duration(head.step_time_ns)} each (median)` : ""),
    card("Duration", duration(head.duration_ns), outcome));
}
