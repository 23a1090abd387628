import type { Finding, Report } from "../api";
import { h, rich } from "../lib/dom";
import { bytes, place } from "../lib/format";
import { badge } from "./header";

/** What is wrong and what to change, worst first. */
export function findings(report: Report): HTMLElement {
  return h("section", { id: "findings" }, h("h2", {}, "Findings"),
    ...(report.findings.length ? report.findings.map(finding) : [h("p", { class: "fine" }, "Nothing to change was found.")]));
}

function finding(f: Finding): HTMLElement {
  const figures = [
    f.bytes_per_step !== undefined && `${bytes(f.bytes_per_step)} per step${f.error_bytes !== undefined ? ` ± ${bytes(f.error_bytes)}` : ""}`,
    f.bytes !== undefined && `${bytes(f.bytes)}${f.bytes_per_step !== undefined ? " so far" : ""}`,
    f.confidence && `confidence ${Math.round(f.confidence * 100)} %`, f.phase && `in ${f.phase}`,
  ].filter(Boolean).join(" · ");
  return h("article", { class: `finding ${f.severity}` },
    h("div", { class: "kind" }, h("span", { class: "severity" }, f.kind), badge(f.label)),
    h("h3", {}, ...rich(f.title)),
    f.file && where(f.file, f.line, f.holder ? `kept by ${f.holder}` : ""),
    f.site_file && (f.site_file !== f.file || f.site_line !== f.line) && where(f.site_file, f.site_line, `allocated${f.site_function ? ` in ${f.site_function}` : " here"}`),
    figures && h("p", { class: "figures" }, figures),
    h("p", {}, ...rich(f.text)), f.advice && h("p", { class: "advice" }, ...rich(f.advice)),
    f.stack?.length ? h("details", {}, h("summary", {}, `Stack, ${f.stack.length} calls`),
      h("ol", { class: "stack" }, ...f.stack.map((l) => h("li", { title: l.file }, h("code", {}, place(l.file, l.line)), " ", l.function ?? "")))) : null);
}

/** A line that a click copies in full. */
function where(file: string, line: number | undefined, note: string): HTMLElement {
  const full = line ? `${file}:${line}` : file;
  const button = h("button", { type: "button", class: "where", title: `${full} (click to copy)` }, place(file, line));
  button.addEventListener("click", () => {
    void navigator.clipboard?.writeText(full).then(() => { button.classList.add("copied"); setTimeout(() => button.classList.remove("copied"), 900); });
  });
  return h("p", { class: "line" }, button, " ", note);
}
