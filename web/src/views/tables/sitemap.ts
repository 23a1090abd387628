import type { Report } from "../../api";
import { bytes, percent } from "../../lib/format";
import { phaseNames } from "../../lib/phases";
import { treemap } from "../../lib/treemap";
import { followed, standing, toggle } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { h } from "../dom";
import { laneOf } from "../rows";

interface Site {
  line: string;
  function: string;
  bytes: number;
  phase: string;
  file: string;
}

const mostBoxes = 24;

/** The rows of the table that hold something, the largest first. */
function sitesOf(table: Report["tables"][number]): Site[] {
  const at = (name: string) => table.columns.findIndex((c) => c.name === name);
  const text = (v: unknown) => (typeof v === "string" ? v : "");
  return table.rows.flatMap((r): Site[] => {
    const size = r[at("bytes")];
    return typeof size === "number" && size > 0
      ? [
          {
            line: text(r[at("line")]),
            function: text(r[at("function")]),
            bytes: size,
            phase: text(r[at("phase")]),
            file: text(r[at("file")]),
          },
        ]
      : [];
  });
}

const legend = (phases: readonly string[]): HTMLElement =>
  h(
    "p",
    { class: "phases" },
    ...phases.map((n) => h("span", {}, h("i", { style: `background:var(--phase-${n})` }), n)),
    h(
      "span",
      {},
      h("i", { style: "background:var(--muted)" }),
      "outside the phases, or not recorded which",
    ),
  );

/** The lines that hold the heap, as areas; the colour is the phase in which they allocate. */
export function sitemap(report: Report, page: PageStore): HTMLElement | null {
  const table = report.tables.find((t) => t.name === "sites");
  if (!table) return null;
  const sites = sitesOf(table);
  if (sites.length < 3) return null;
  const whole = table.total_bytes ?? 0;
  const kept = sites.slice(0, mostBoxes),
    missing = whole - kept.reduce((n, s) => n + s.bytes, 0);
  if (missing > whole * 0.01)
    kept.push({ line: "all other lines", function: "", bytes: missing, phase: "", file: "" });
  const total = kept.reduce((n, s) => n + s.bytes, 0);
  const present = phaseNames.filter((n) => kept.some((s) => colourOf(s.phase) === n));
  const map = h("div", {
    class: "map",
    role: "img",
    "aria-label": kept
      .slice(0, 5)
      .map((s) => `${s.line} ${bytes(s.bytes)}`)
      .join(", "),
  });
  let shown: [Site, HTMLElement][] = [];
  const mark = () => {
    for (const [s, box] of shown) {
      const is = standing(page.get(), {
        line: s.line,
        ...(s.phase ? { phase: laneOf(s.phase) } : {}),
        words: `${s.line} ${s.function} ${s.file}`,
      });
      box.classList.toggle("picked", is === "picked");
      box.classList.toggle("dim", is === "dim");
    }
  };
  const draw = () => {
    if (map.clientWidth === 0) return;
    shown = boxes(kept, total, map.clientWidth, map.clientHeight);
    for (const [s, box] of shown)
      // the table below has the same for the keyboard
      if (s.file) box.addEventListener("click", () => toggle(page, { line: s.line }));
    map.replaceChildren(...shown.map(([, box]) => box));
    mark();
  };
  new ResizeObserver(draw).observe(map);
  page.follow([...followed], mark);
  return h("figure", { class: "sitemap" }, map, legend(present));
}

/** Places are in per cent, so that a print of another width keeps them. */
function boxes(sites: Site[], total: number, width: number, height: number): [Site, HTMLElement][] {
  return treemap(sites, (s) => s.bytes, width, height).map(({ item, x, y, w, h: tall }) => {
    const colour = colourOf(item.phase),
      part = (v: number, whole: number) => `${((v / whole) * 100).toFixed(3)}%`;
    const box = h("div", {
      style:
        `left:${part(x, width)};top:${part(y, height)};` +
        `width:${part(w, width)};height:${part(tall, height)};` +
        `--ink:var(--${colour ? `phase-${colour}` : "muted"})`,
      title: [
        item.file || item.line,
        item.function,
        `${bytes(item.bytes)} · ${percent((item.bytes / total) * 1000)}`,
        item.phase && `in ${item.phase}`,
      ]
        .filter(Boolean)
        .join("\n"),
    });
    if (w > 66 && tall > 44) box.append(h("b", {}, item.line), h("span", {}, bytes(item.bytes)));
    if (w > 110 && tall > 64 && item.function) box.append(h("small", {}, item.function));
    return [item, box];
  });
}

/** A module runs in forward; what is not a phase of the strip has no colour. */
const colourOf = (phase: string) =>
  phase === "module" ? "forward" : (phaseNames as readonly string[]).includes(phase) ? phase : "";
