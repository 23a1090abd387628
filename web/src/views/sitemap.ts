import type { Report } from "../api";
import { bytes, percent } from "../lib/format";
import { phaseNames } from "../lib/phases";
import { treemap } from "../lib/treemap";
import { h } from "./dom";

interface Site { line: string; function: string; bytes: number; phase: string; file: string }

const mostBoxes = 24;

/** The lines that hold the heap, as areas; the colour is the phase in which they allocate. */
export function sitemap(report: Report): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "sites");
  if (!table) return null;
  const at = (name: string) => table.columns.findIndex((c) => c.name === name);
  const [line, fn, size, phase, file] = ["line", "function", "bytes", "phase", "file"].map(at) as [number, number, number, number, number];
  const text = (v: unknown) => typeof v === "string" ? v : "";
  const sites = table.rows.flatMap((r): Site[] => typeof r[size] === "number" && r[size] > 0
    ? [{ line: text(r[line]), function: text(r[fn]), bytes: r[size], phase: text(r[phase]), file: text(r[file]) }] : []);
  if (sites.length < 3) return null;
  const whole = table.total_bytes ?? 0;
  const kept = sites.slice(0, mostBoxes), missing = whole - kept.reduce((n, s) => n + s.bytes, 0);
  if (missing > whole * 0.01) kept.push({ line: "all other lines", function: "", bytes: missing, phase: "", file: "" });
  const total = kept.reduce((n, s) => n + s.bytes, 0);
  const present = phaseNames.filter((n) => kept.some((s) => colourOf(s.phase) === n));
  const map = h("div", { class: "map", role: "img", "aria-label": kept.slice(0, 5).map((s) => `${s.line} ${bytes(s.bytes)}`).join(", ") });
  new ResizeObserver(() => { if (map.clientWidth > 0) map.replaceChildren(...boxes(kept, total, map.clientWidth, map.clientHeight)); }).observe(map);
  return h("figure", { class: "sitemap" }, map,
    h("p", { class: "phases" }, ...present.map((n) => h("span", {}, h("i", { style: `background:var(--phase-${n})` }), n)),
      h("span", {}, h("i", { style: "background:var(--muted)" }), "outside the phases")));
}

/** Places are in per cent, so that a print of another width keeps them. */
function boxes(sites: Site[], total: number, width: number, height: number): HTMLElement[] {
  return treemap(sites, (s) => s.bytes, width, height).map(({ item, x, y, w, h: tall }) => {
    const colour = colourOf(item.phase), part = (v: number, whole: number) => `${((v / whole) * 100).toFixed(3)}%`;
    const box = h("div", {
      style: `left:${part(x, width)};top:${part(y, height)};width:${part(w, width)};height:${part(tall, height)};--ink:var(--${colour ? `phase-${colour}` : "muted"})`,
      title: [item.file || item.line, item.function, `${bytes(item.bytes)} · ${percent((item.bytes / total) * 1000)}`, item.phase && `in ${item.phase}`].filter(Boolean).join("\n"),
    });
    if (w > 66 && tall > 44) box.append(h("b", {}, item.line), h("span", {}, bytes(item.bytes)));
    if (w > 110 && tall > 64 && item.function) box.append(h("small", {}, item.function));
    return box;
  });
}

/** A module runs in forward; what is no phase of the strip has no colour. */
const colourOf = (phase: string) => phase === "module" ? "forward" : (phaseNames as readonly string[]).includes(phase) ? phase : "";
