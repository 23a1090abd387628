import type { Allocator, Finding, Report } from "../../api";
import { bytes, commandLine, count, duration, sentence, toneOf } from "../../lib/format";
import { headed } from "../../lib/headline";
import type { Store } from "../../state/store";
import { badge, copier, h, rich } from "../dom";

/** Who ran what, and the answer in one breath. */
export function header(report: Report): HTMLElement {
  const { run, headline } = report;
  const command = commandLine(run.command ?? []);
  const { head, rest: left } = headed(
      headline.clauses.length ? headline.clauses : [headline.verdict],
    ),
    rest = sentence(left),
    help = remedy(report); // one figure, then what else there is to say
  const stop = headline.clauses.length > 0 ? "." : "";
  const tags = Object.entries(run.tags ?? {}).map(([k, v]) =>
    h("span", { class: "tag" }, v ? `${k}=${v}` : k),
  );
  return h(
    "header",
    { class: "top" },
    h(
      "p",
      { class: "what" },
      h(
        "strong",
        {},
        run.name ||
          run.id ||
          (report.allocators?.length ? "Allocator snapshots" : "A recording without its beginning"),
      ),
      badge(run.label),
      outcome(report),
      ...tags,
    ),
    h(
      "h1",
      {},
      ...rich(rest ? head : head + stop),
      rest && h("span", { class: "unseen" }, ". "),
      rest && h("span", { class: "more-said" }, ...rich(rest + stop)),
    ),
    help && h("p", { class: "advice remedy" }, h("b", {}, "Do this "), ...rich(help.advice!)),
    command && copier(command, { class: "command" }, h("code", {}, command)),
    headline.exception?.sentence && h("p", { class: "uncaught" }, headline.exception.sentence),
    h("p", { class: "facts" }, ...facts(report).map((f) => h("span", {}, f))),
    !headline.complete &&
      h(
        "p",
        { class: "banner no-end", role: "note" },
        "This recording has no end: the run was still going on, or its recorder was stopped. " +
          "Everything up to then is here.",
      ),
  );
}

/**
 * The finding that says how an out-of-memory is avoided: its advice stands at the top of the page.
 */
export const remedy = ({ findings }: Pick<Report, "findings">): Finding | undefined =>
  findings.find((f) => f.kind === "oom" && f.severity === "critical" && f.advice);

/** How the command ended, as far as it is known. */
function outcome(report: Report): HTMLElement | null {
  const { ended, complete } = report.headline;
  return ended
    ? h("span", { class: `outcome ${toneOf(ended)}${complete ? "" : " no-end"}` }, ended.text)
    : null;
}

function facts(report: Report): string[] {
  const { run, headline, processes } = report;
  const { host, git } = run;
  if (report.allocators?.length && headline.duration_ns === 0) return traceFacts(report.allocators);
  const frameworks = new Set(
    processes.flatMap((p) => Object.entries(p.frameworks ?? {}).map(([k, v]) => `${k} ${v}`)),
  );
  const pythons = new Set(processes.flatMap((p) => (p.python ? [`Python ${p.python}`] : [])));
  const gpus = new Map<string, number>();
  for (const g of host.gpus ?? []) gpus.set(g.name, (gpus.get(g.name) ?? 0) + 1);
  return [
    headline.duration_ns > 0 &&
      `${run.verb === "attach" ? "recorded for" : "ran"} ${duration(headline.duration_ns)}`,
    processes.length > 1 && `${count(processes.length)} processes`,
    host.name && `on ${host.name}`,
    host.cpus > 0 && `${host.cpus} CPUs`,
    host.memory_bytes !== undefined && `${bytes(host.memory_bytes)} of memory`,
    ...[...gpus].map(([name, n]) => (n > 1 ? `${n} × ${name}` : name)),
    ...frameworks,
    ...pythons,
    git &&
      ["git", git.branch, git.commit.slice(0, 9), git.dirty && "+ changes"]
        .filter(Boolean)
        .join(" "),
  ].filter((f): f is string => Boolean(f));
}

/** What there was to read, where the report is of snapshots alone. */
function traceFacts(all: Allocator[]): string[] {
  const events = all.reduce((n, a) => n + a.events, 0),
    steps = all[0]!.steps?.steps.length ?? 0;
  return [
    events ? `${count(events)} event${events === 1 ? "" : "s"} of the allocator` : "no trace",
    all.length > 1 ? `${all.length} devices` : "",
    steps ? `${count(steps)} steps, ${all[0]!.steps!.source}` : "",
    settings(all),
  ].filter(Boolean);
}

/**
 * The line of settings that was in force; "" where the files do not tell, or tell different ones.
 */
function settings(all: Allocator[]): string {
  const lines = new Set(
    all
      .filter((a) => a.settings)
      .map((a) => {
        const [name, line] =
          Object.entries(a.settings ?? {}).find(([k]) => k.endsWith("_ALLOC_CONF")) ?? [];
        return name === undefined ? "" : line ? `${name}=${line}` : `${name} not set`;
      }),
  );
  return lines.size === 1 ? [...lines][0]! : "";
}

const mark =
  "M1 13c3 0 3-3 6-3s3 3 6 3 3-3 6-3 3 3 4 3M1 19c3 0 3-3 6-3s3 3 6 3 3-3 6-3 3 3 4 3M12 " +
  "2v5m0-5-2.5 2.5M12 2l2.5 2.5";

/** The bar that stays: the name, the way to each part, light or dark. */
export function bar(
  page: Store<{ dark: boolean }>,
  parts: [id: string, title: string][],
): HTMLElement {
  const toggle = h("button", { type: "button", class: "toggle", title: "Light or dark (key t)" });
  toggle.addEventListener("click", () => page.set({ dark: !page.get().dark }));
  page.follow(["dark"], ({ dark }) => {
    toggle.textContent = dark ? "☀" : "☾";
    toggle.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
  });
  const logo = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  logo.setAttribute("viewBox", "0 0 24 24");
  logo.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", mark);
  logo.append(path);
  return h(
    "div",
    { class: "bar", role: "banner" },
    h("a", { class: "skip", href: `#${parts[0]?.[0] ?? "app"}` }, "Skip to the findings"),
    h("span", { class: "brand" }, logo, "hightide"),
    h(
      "nav",
      { "aria-label": "Parts of this page" },
      ...parts.map(([id, title]) => h("a", { href: `#${id}` }, title)),
    ),
    toggle,
  );
}
