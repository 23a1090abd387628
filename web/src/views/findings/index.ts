import type { Finding, Location, Report } from "../../api";
import { basename, bytes, percent, place } from "../../lib/format";
import { followed, standing, toggle } from "../../state/selection";
import type { PageStore } from "../../state/page";
import { badge, copier, h, rich, section } from "../dom";
import { remedy } from "../header";
import { laneOf } from "../rows";
import { meaningOf } from "./meaning";

const kinds: Record<string, string> = {
  leak: "leak",
  growth: "growth",
  bounded: "growth that ends",
  oom: "out of memory",
  fragmentation: "fragmentation",
  swap: "swap",
  faults: "page faults",
  gap: "gap",
  drop: "lost records",
  alert: "alert",
};
const shownAtFirst = 8;

/** What is wrong and what to change, worst first. */
export function findings(report: Report, page: PageStore): HTMLElement | null {
  // a difference judges nothing
  if (report.run.verb === "diff" && report.findings.length === 0) return null;
  const [first, rest] = [
    report.findings.slice(0, shownAtFirst),
    report.findings.slice(shownAtFirst),
  ];
  const top = remedy(report);
  const { nothing: said, well } = report.headline;
  const nothing = h(
    "p",
    { class: well ? "nothing well" : "nothing" },
    said ?? "Nothing was observed that could be judged.",
  );
  return section(
    "findings",
    first.length > 1 ? `${report.findings.length} findings, worst first` : "Findings",
    ...(first.length > 0 ? first.map((f) => finding(f, page, top)) : [nothing]),
    rest.length > 0 &&
      h(
        "details",
        { class: "rest" },
        h("summary", {}, `${rest.length} more`),
        ...rest.map((f) => finding(f, page, top)),
      ),
  );
}

function finding(f: Finding, page: PageStore, top: Finding | undefined): HTMLElement {
  const element = article(f, f === top),
    lines = [
      f.site_file && place(f.site_file, f.site_line),
      f.file && place(f.file, f.line),
    ].filter((l): l is string => Boolean(l));
  const phase = f.phase ? laneOf(f.phase) : "",
    what = lines[0] ? { line: lines[0] } : phase ? { phase } : null;
  const select =
    what &&
    h(
      "button",
      { type: "button", class: "plain select", "aria-pressed": "false" },
      `Select this ${lines[0] ? "line" : "phase"} in every panel`,
    );
  if (select) {
    select.addEventListener("click", () => toggle(page, what));
    element.append(select);
  }
  page.follow([...followed], (of) => {
    const line = lines.includes(of.line) ? of.line : lines[0];
    const is = standing(of, {
      ...(line ? { line } : {}),
      ...(f.phase ? { phase } : {}),
      ...(f.process ? { process: f.process } : {}),
      words: element.textContent ?? "",
    });
    element.classList.toggle("picked", is === "picked");
    element.classList.toggle("dim", is === "dim");
    select?.setAttribute(
      "aria-pressed",
      String(
        what !== null &&
          Object.entries(what).every(([name, value]) => of[name as "line"] === value),
      ),
    );
  });
  return element;
}

/** said: its advice stands at the top of the page. */
function article(f: Finding, said: boolean): HTMLElement {
  const site = f.site_file && (f.site_file !== f.file || f.site_line !== f.line),
    short = f.kind === "oom",
    holds = short && site ? "holds the most" : "";
  return h(
    "article",
    { class: `finding ${f.severity}` },
    h(
      "p",
      { class: "kind" },
      h("span", { class: "severity" }, kinds[f.kind] ?? f.kind),
      badge(f.label),
    ),
    h("h3", {}, ...rich(f.title)),
    f.file && where(f.file, f.line, f.holder ? "keeps it: " : holds, f.holder ?? ""),
    site &&
      where(
        f.site_file!,
        f.site_line,
        short ? "asked for it" : "allocates it",
        f.site_function ? `in ${f.site_function}` : "",
      ),
    figures(f),
    f.text !== f.title && h("p", { class: "text" }, ...rich(f.text)),
    said
      ? h("p", { class: "hint" }, "What to do stands at the top of the page.")
      : f.advice && h("p", { class: "advice" }, h("b", {}, "Do this "), ...rich(f.advice)),
    f.stack?.length ? stack(f.stack) : null,
    meaning(f.kind),
  );
}

/** What its kind means, from the documentation. */
function meaning(kind: string): HTMLElement | null {
  const paragraphs = meaningOf(kind);
  return paragraphs.length
    ? h(
        "details",
        { class: "calls meaning" },
        h("summary", {}, `What “${kinds[kind] ?? kind}” means`),
        ...paragraphs.map((p) =>
          h(p.quoted ? "blockquote" : "p", {}, p.lead && h("b", {}, p.lead), ...rich(p.text)),
        ),
      )
    : null;
}

/** The numbers of a finding, each with what it is. */
function figures(f: Finding): HTMLElement | null {
  const error = f.error_bytes !== undefined ? ` ± ${bytes(f.error_bytes)}` : "",
    perStep = f.bytes_per_step;
  const parts: [string, string][] = [];
  if (perStep !== undefined) parts.push(["per step", `${bytes(perStep)}${error}`]);
  if (f.bytes !== undefined)
    parts.push([
      f.kind === "oom"
        ? "asked for"
        : f.kind === "alert"
          ? "reached"
          : perStep !== undefined
            ? "by the end"
            : "in all",
      `${bytes(f.bytes)}${perStep === undefined ? error : ""}`,
    ]);
  if (f.confidence)
    parts.push(["confidence", f.confidence >= 0.995 ? "> 99 %" : percent(f.confidence * 1000)]);
  // modules run in forward
  if (f.phase) parts.push(["phase", f.phase === "module" ? "forward" : f.phase]);
  return parts.length
    ? h(
        "dl",
        { class: "figures" },
        ...parts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
      )
    : null;
}

/** A line that a click copies in full. */
function where(file: string, line: number | undefined, role: string, what: string): HTMLElement {
  const full = line ? `${file}:${line}` : file;
  const folder = file.slice(0, file.length - basename(file).length);
  return h(
    "p",
    { class: "line" },
    copier(
      full,
      { class: "where" },
      folder && h("span", { class: "folder" }, h("bdi", {}, folder)),
      h("b", {}, place(file, line)),
    ),
    (role || what) &&
      h(
        "span",
        { class: "role" },
        role,
        role.endsWith(" ") && what ? h("code", {}, what) : what && ` ${what}`,
      ),
  );
}

/** Innermost first. Calls inside installed packages are there, but step back. */
function stack(calls: Location[]): HTMLElement {
  const installed = (l: Location) =>
    l.native || /\/(site-packages|dist-packages|lib\/python3[^/]*)\//.test(l.file);
  return h(
    "details",
    { class: "calls" },
    h(
      "summary",
      {},
      calls.length === 1
        ? "Stack of the allocation, 1 call"
        : `Stack of the allocation, ${calls.length} calls`,
    ),
    h(
      "ol",
      { class: "stack" },
      ...calls.map((l) =>
        h(
          "li",
          { class: installed(l) ? "installed" : "own" },
          h("code", { title: l.line ? `${l.file}:${l.line}` : l.file }, place(l.file, l.line)),
          l.function && h("span", {}, ` ${l.function}`),
          l.native && h("small", {}, " native"),
        ),
      ),
    ),
  );
}
