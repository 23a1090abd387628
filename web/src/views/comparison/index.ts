// Two reports beside each other: what the difference of their peaks is made of, both courses, the
// calls, the table. The live page and a page of one file are made of it.

import "../../style/forms.css";
import type { Label, Report, StackSet, Table } from "../../api";
import { courses, type Courses } from "../../lib/bothcourses";
import { largest, ofReports, ofTable, type Difference } from "../../lib/difference";
import { bytes, duration, sentence } from "../../lib/format";
import type { PageStore } from "../../state/page";
import type { Store } from "../../state/store";
import { bothCourses } from "./bothcourses";
import { badge, h, section, type Child } from "../dom";
import { flameDiff } from "../flames/difference";
import { selecting } from "../tables";
import { waterfallPicture } from "../waterfall";

const ways: [by: string, title: string][] = [
  ["site", "device, by call"],
  ["module", "device, by module"],
  ["category", "device, by category"],
  ["composition", "host, by part"],
  ["sites", "host, by line"],
];
export const ofHost = (by: string) => by === "composition" || by === "sites";

/**
 * What is shown. Told is the report of what differs of what both recorded; device is the report of
 * the difference on the device; where there is none, whyNot says why. A page of one file has it by
 * one thing, deviceBy.
 */
export interface Comparing {
  before: Report;
  after: Report;
  told: Report | null;
  device: Report | null;
  whyNot: string;
  deviceBy?: string;
  by: string;
  choose(by: string): void;
  along: Store<{ along: string }>;
  facts(by: string): Child[]; // below the waterfall
}

/** What a page of one file holds. */
export interface Compared {
  before: Report;
  after: Report;
  told?: Report;
  device: Report | null;
  by?: string;
  why_not?: string;
}

/** Parts that the bar of such a page links to. */
export const differenceParts: [id: string, title: string][] = [
  ["difference", "Difference"],
  ["bothcourses", "Curves"],
  ["flamediff", "Calls"],
  ["difftable", "Table"],
];

export const nameOf = (p: Report, q: Report) =>
  `${p.run.name || p.run.id} → ${q.run.name || q.run.id}`;

/** Buttons for the ways to compare. */
const switcher = (
  ways: (readonly [way: string, title: string])[],
  chosen: string,
  choose: (way: string) => void,
): HTMLElement =>
  h(
    "div",
    { class: "switch", role: "group", "aria-label": "By" },
    ...ways.map(([way, title]) => {
      const button = h("button", { type: "button", "aria-pressed": String(way === chosen) }, title);
      button.addEventListener("click", () => choose(way));
      return button;
    }),
  );

/** Stacks of both that are of the same memory, the device's first; null: there are none. */
function flamesOf(p: Report, q: Report): readonly [StackSet, StackSet] | null {
  const stacks = (r: Report, where: string) =>
    r.stacks?.filter((s) => s.name === where).sort((x, y) => y.total_bytes - x.total_bytes)[0];
  const where =
    stacks(p, "device") && stacks(q, "device")
      ? "device"
      : p.stacks?.find((s) => stacks(q, s.name))?.name;
  return where ? [stacks(p, where)!, stacks(q, where)!] : null;
}

/** The parts of a difference as a table, what changed most first. */
const tableOf = (d: Difference): Table => ({
  name: "diff",
  title: `By ${d.by}`,
  columns: [
    { name: "what", title: d.by },
    { name: "delta", title: "Change", unit: "bytes" },
    { name: "a", title: "Before", unit: "bytes" },
    { name: "b", title: "After", unit: "bytes" },
  ],
  rows: d.parts
    .map((x) => [x.name, x.after - x.before, x.before, x.after] as (string | number)[])
    .sort((x, y) => Math.abs(Number(y[1])) - Math.abs(Number(x[1]))),
});

export function comparison(
  { before: p, after: q, told, device, whyNot, deviceBy, by, choose, along, facts }: Comparing,
  page: PageStore,
): { answer: HTMLElement; over: Courses[]; parts: HTMLElement[] } {
  const known = (way: string) =>
    ofHost(way)
      ? ofReports(p, q, way) !== null
      : device !== null && (!deviceBy || way === deviceBy);
  const chosen = by && known(by) ? by : (ways.map(([way]) => way).find(known) ?? "");
  const table = !ofHost(chosen) ? device?.tables.find((t) => t.name === "diff") : undefined,
    d: Difference | null = ofHost(chosen) ? ofReports(p, q, chosen) : table ? ofTable(table) : null;
  const name = nameOf(p, q),
    over = courses(p, q);
  const flames = flamesOf(p, q);
  const shown = table ?? (d && tableOf(d));
  return {
    answer: answer(told, d, chosen, p, q),
    over,
    parts: [
      section(
        "difference",
        name,
        headline(told, d, chosen, p, q, table?.columns.find((c) => c.name === "a")?.label ?? ""),
        h(
          "div",
          { class: "tools" },
          switcher(
            ways.filter(([way]) => known(way)),
            chosen,
            choose,
          ),
        ),
        device === null &&
          h("p", { class: "hint" }, `The device's blocks cannot be compared: ${whyNot}`),
        chosen === "composition" &&
          h(
            "p",
            { class: "hint" },
            "What the processes held is RSS, at the moment of each run's peak; " +
              "pages that they share count in each.",
          ),
        d
          ? waterfallPicture(
              () => d,
              () => name,
              page,
            )
          : h("p", { class: "nothing" }, "Neither run says what its peak was made of."),
        h("p", { class: "facts" }, ...facts(chosen)),
      ),
      ...(over.length ? [bothCourses(over, name, page, along)] : []),
      ...(flames
        ? [section("flamediff", "Who holds more, who less", flameDiff(flames[0], flames[1], page))]
        : []),
      ...(shown
        ? [
            section(
              "difftable",
              shown.title,
              shown.note && h("p", { class: "hint" }, shown.note),
              selecting(shown, page).element,
            ),
          ]
        : []),
    ],
  };
}

/**
 * The axis of the curves as a page's parameters have it, so that it is undone and linked to with
 * the rest.
 */
export const alongOf = <S extends { params: Readonly<Record<string, string>> }>(
  page: Store<S>,
): Store<{ along: string }> => {
  const get = () => ({ along: page.get().params.along ?? "" });
  return {
    get,
    set: (to) => page.set({ params: { ...page.get().params, ...to } } as Partial<S>),
    follow: (_, then) => page.follow(["params"], () => then(get())),
  };
};

/** Which moment the curves that are shown count in. */
export const momentsOf = (over: Courses[], along: string) =>
  (over.find((c) => c.along === along) ?? over[0])?.along ?? "event";

/** What the parts of a host's memory add up to: the peak of the RSS may be another moment's. */
const sums: Readonly<Record<string, string>> = {
  composition: "RSS at the peak",
  sites: "Heap at its highest",
};

/** Of the device the blocks of its allocator are compared; what the process had of it is more. */
const allocated = "Peak allocated";

/** How what the lines of both held was obtained. */
function lineLabels(...reports: Report[]): string {
  const labels = reports.map((r) => r.heap_lines?.lines[0]?.label ?? "sampled");
  return [...new Set(labels)].join(" and ");
}

/**
 * What changed, in one breath; the question, where nothing can be compared. The figure is the one
 * by which lists know both.
 */
function answer(
  told: Report | null,
  d: Difference | null,
  by: string,
  p: Report,
  q: Report,
): HTMLElement {
  const most = d && largest(d, 1)[0],
    signed = (n: number) => `${n < 0 ? "−" : "+"}${bytes(Math.abs(n))}`,
    largestText = most
      ? `the largest change ${told ? `of ${sums[by] ?? allocated} ` : ""}is ` +
        `${most.name.split(" ← ")[0]}, ${signed(most.after - most.before)}`
      : "";
  if (told)
    return h(
      "h1",
      {},
      told.headline.clauses[0] ?? told.headline.verdict,
      h("span", { class: "unseen" }, ". "),
      most && h("span", { class: "more-said" }, `${sentence(largestText)}.`),
    );
  if (!d) return question();
  const [a, b] = [p, q].map((r) => r.run.name || r.run.id),
    change = d.after - d.before;
  return h(
    "h1",
    {},
    `${sums[by] ?? allocated}${by === "sites" ? ` (${lineLabels(p, q)})` : ""}: `,
    change === 0
      ? `${b} has as much as ${a}`
      : `${bytes(Math.abs(change))} ${change > 0 ? "more" : "less"} in ${b} than in ${a}`,
    h("span", { class: "unseen" }, ". "),
    h(
      "span",
      { class: "more-said" },
      `${bytes(d.before)} before, ${bytes(d.after)} after${largestText && `; ${largestText}`}.`,
    ),
  );
}

export const question = (): HTMLElement =>
  h("h1", {}, "What changed between two runs or snapshots?");

function headline(
  told: Report | null,
  d: Difference | null,
  by: string,
  p: Report,
  q: Report,
  label: Label,
): HTMLElement {
  const rows: [string, string, string, Label[]][] = [],
    signed = (n: number) => (n === 0 ? "the same" : `${n < 0 ? "−" : "+"}${bytes(Math.abs(n))}`);
  const table = told?.tables.find((t) => t.name === "figures"),
    at = (name: string) => table?.columns.findIndex((c) => c.name === name) ?? -1;
  for (const row of table?.rows ?? []) {
    const [a, b, what, of] = [
      row[at("a")],
      row[at("b")],
      String(row[at("what")]),
      String(row[at("label")] ?? ""),
    ];
    if (typeof a === "number" && typeof b === "number")
      rows.push([
        sentence(what),
        bytes(a),
        `${bytes(b)} (${signed(b - a)})`,
        of.split(" → ") as Label[],
      ]);
  }
  if (d && !(told && by === "composition"))
    rows.unshift([
      sums[by] ?? allocated,
      bytes(d.before),
      `${bytes(d.after)} (${signed(d.after - d.before)})`,
      [label],
    ]);
  const add = (
    title: string,
    a: number | undefined,
    b: number | undefined,
    show: (v: number) => string,
    ...labels: Label[]
  ) => {
    if (a !== undefined && b !== undefined && (a || b))
      rows.push([title, show(a), show(b), labels]);
  };
  if (!p.imagined && !q.imagined) {
    // an imagined one's times say nothing of the program's
    add("Step time", p.headline.step_time_ns, q.headline.step_time_ns, duration, "measured");
    add("Duration", p.headline.duration_ns, q.headline.duration_ns, duration, "measured");
  }
  const ends = [p, q].map((r) => r.headline.ended?.text ?? "");
  if (ends[0] && ends[1] && ends[0] !== ends[1]) rows.push(["Ended", ends[0], ends[1], []]);
  return h(
    "dl",
    { class: "figures" },
    ...rows.map(([k, a, b, labels]) =>
      h(
        "div",
        {},
        h("dt", {}, k, ...[...new Set(labels)].flatMap((l) => (l ? [" ", badge(l)] : []))),
        h("dd", {}, `${a} → ${b}`),
      ),
    ),
  );
}
