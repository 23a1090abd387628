// Two runs or snapshots beside each other: what the difference of their peaks is made of, as
// pictures and as a table; one file to share.

import type { OpenedSnapshot, Report, Run } from "../../../api";
import type { Courses } from "../../../lib/bothcourses";
import { bytes, commandLine } from "../../../lib/format";
import { complete } from "../../../state/report";
import {
  alongOf,
  comparison,
  momentsOf,
  nameOf,
  ofHost,
  question,
} from "../../../views/comparison";
import { copier, h } from "../../../views/dom";
import { get, Problem, query, report, runs as fetchRuns } from "../../api";
import { busy, empty, failure, saver } from "../../parts";
import { titleOf } from "../../runlist";
import type { App } from "../../state";
import type { KeyGroup } from "../../frame/keys";
import type { Shown } from "../page";

/** What can be compared: a run, or a snapshot that is open. */
interface Choice {
  id: string;
  title: string;
  snapshot: boolean;
}

export function diffPage(app: App): Shown {
  const asking = new AbortController(),
    { a = "", b = "", by = "" } = app.get().params,
    body = h("div", {});
  const set = (change: Record<string, string>) =>
    app.set({
      params: Object.fromEntries(
        Object.entries({ ...app.get().params, ...change }).filter(([, v]) => v),
      ),
    });
  const before = listOf("Before", (a) => set({ a })),
    after = listOf("After", (b) => set({ b })),
    swap = h("button", { type: "button", class: "button", "aria-keyshortcuts": "s" }, "Swap");
  const find = h("input", {
      type: "search",
      placeholder: "Find a run or a snapshot",
      "aria-label": "What the lists offer (key /)",
    }),
    exchange = () => set({ a: b, b: a });
  let all: Choice[] = [];
  const fill = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean),
      some = all.filter((c) =>
        words.every((w) => c.title.toLowerCase().includes(w) || c.id.includes(w)),
      );
    offer(before.select, a, some, all, words.length > 0);
    offer(after.select, b, some, all, words.length > 0);
  };
  find.addEventListener("input", fill);
  swap.addEventListener("click", exchange);
  const list = () =>
    void Promise.all([
      fetchRuns("", asking.signal, 1000),
      get<{ snapshots: OpenedSnapshot[] | null }>("/snapshots", asking.signal),
    ]).then(
      ([{ runs }, { snapshots }]) => {
        all = [...runChoices(runs), ...(snapshots ?? []).map(snapshotChoice)];
        fill();
      },
      (e: unknown) => {
        if (!asking.signal.aborted) body.replaceChildren(failure(e, again));
      },
    );
  const element = h(
    "div",
    { class: "job-page" },
    !(a && b) && question(),
    h("div", { class: "tools" }, find, before.element, after.element, swap),
    body,
  );
  let over: Courses[] = [];
  const ask = () => {
    body.replaceChildren(busy());
    void difference(app, a, b, by, asking.signal).then(
      (made) => {
        over = made.over;
        body.replaceChildren(made.answer, ...made.parts);
        dispatchEvent(new Event("hightide:named")); // what a moment is depends on the curves
      },
      (e: unknown) => {
        if (!asking.signal.aborted) body.replaceChildren(failure(e, again));
      },
    );
  };
  const again = () => {
    list();
    if (a && b) ask();
  };
  if (!a || !b) body.append(chooseTwo());
  again();
  return {
    element,
    close: () => asking.abort(),
    moments: () => momentsOf(over, app.get().params.along ?? ""),
    keys: keysOf(exchange, () => find.focus()),
    commands: () =>
      a || b ? [{ title: "Swap before and after", kind: "action", key: "s", run: exchange }] : [],
  };
}

const keysOf = (exchange: () => void, find: () => void): KeyGroup[] => [
  {
    title: "Compare",
    keys: [
      { keys: ["s"], does: "swap before and after", run: exchange },
      { keys: ["/"], does: "find a run or a snapshot", run: find },
    ],
  },
];

/** A list of what can be compared, with its title. */
function listOf(title: string, chosen: (id: string) => void) {
  const select = h("select", { "aria-label": title }, h("option", { value: "" }, "choose one"));
  select.addEventListener("change", () => chosen(select.value));
  return { select, element: h("label", { class: "choose" }, `${title} `, select) };
}

const chooseTwo = (): HTMLElement =>
  empty(
    "Choose two",
    "Their peaks are compared: on the device block by block where both are snapshots or " +
      "recorded one, on the host by what the peak was made of.",
    "hightide diff BEFORE AFTER",
  );

/** Fills a list with the choices that match, and the chosen one whether it does or not. */
function offer(
  select: HTMLSelectElement,
  value: string,
  some: Choice[],
  all: Choice[],
  searched: boolean,
): void {
  const group = (title: string, of: Choice[]) =>
    of.length > 0 &&
    h("optgroup", { label: title }, ...of.map((c) => h("option", { value: c.id }, c.title)));
  const known = all.find((c) => c.id === value),
    kept =
      value && !some.some((c) => c.id === value)
        ? h("option", { value }, known?.title ?? value)
        : null;
  const none = some.length || !searched ? "choose one" : "nothing is called so";
  select.replaceChildren(
    ...[
      h("option", { value: "" }, none),
      kept,
      group(
        "Runs",
        some.filter((c) => !c.snapshot),
      ),
      group(
        "Snapshots",
        some.filter((c) => c.snapshot),
      ),
    ].filter((e) => e instanceof Node),
  );
  select.value = value;
}

/** Runs by their titles, with their ids where several have the same. */
function runChoices(runs: Run[]): Choice[] {
  const titles = runs.map(titled);
  return runs.map((r, i): Choice => ({
    id: r.id,
    title: titles.filter((t) => t === titles[i]).length > 1 ? `${titles[i]} · ${r.id}` : titles[i]!,
    snapshot: false,
  }));
}

const snapshotChoice = (o: OpenedSnapshot): Choice => ({
  id: o.id,
  title: [o.name, ...(o.devices[0] ? [bytes(highest(o))] : [])].join(" · "),
  snapshot: true,
});

/** What the fullest device of a snapshot held at most. */
const highest = ({ devices }: OpenedSnapshot) => Math.max(...devices.map((d) => d.peak_bytes));

const titled = (r: Run) =>
  [
    titleOf(r),
    new Date(r.start_wall_ns / 1e6).toISOString().slice(0, 16).replace("T", " "),
    ...(r.figure ? [`${bytes(r.figure.bytes)} ${r.figure.what}`] : []),
  ].join(" · ");

/**
 * The report of a run, or of a snapshot: those have ids of sixteen digits, or of their run with a
 * number.
 */
async function reportOf(id: string, signal: AbortSignal): Promise<Report> {
  const snapshot = () => get<Report>(`/snapshots/${encodeURIComponent(id)}/report`, signal),
    missing = (e: unknown) => e instanceof Problem && e.status === 404;
  if (!/^[0-9a-f]{16}$|-\d+$/.test(id)) return report(id, signal);
  return snapshot().catch((e: unknown) => {
    if (missing(e)) return report(id, signal);
    throw e;
  });
}

/**
 * Whether there is an allocator's snapshot: a run's report does not carry its blocks, and its row
 * says how many snapshots it keeps.
 */
const hasBlocks = async (id: string, r: Report, signal: AbortSignal) =>
  (r.allocators?.length ?? 0) > 0 ||
  ((await get<Run>(`/runs/${encodeURIComponent(id)}`, signal)).snapshots ?? 0) > 0;

/** What the difference of two peaks is made of. */
export async function difference(
  app: App,
  a: string,
  b: string,
  by: string,
  signal: AbortSignal,
): Promise<ReturnType<typeof comparison>> {
  const [p, q] = (await Promise.all([reportOf(a, signal), reportOf(b, signal)])).map(complete) as [
    Report,
    Report,
  ];
  const [hasA, hasB] = await Promise.all([hasBlocks(a, p, signal), hasBlocks(b, q, signal)]),
    without = !hasA ? p : !hasB ? q : null; // of which there is nothing to compare on the device
  const device = without
    ? new Problem(
        0,
        `${without.run.name || without.run.id} recorded no allocator snapshot; ` +
          "hightide run --snapshot-on exit records one.",
      )
    : await get<Report>(query("/diff", { a, b, by: by && !ofHost(by) ? by : "site" }), signal).then(
        complete,
        (e: unknown) => {
          if (e instanceof Problem && e.status < 500) return e;
          throw e;
        },
      );
  const told = await get<Report>(query("/diff/figures", { a, b }), signal).then(
    complete,
    (e: unknown) => {
      if (e instanceof Problem && e.status < 500) return null;
      throw e;
    },
  ); // null: nothing is known of both
  const runs = [p, q].every((r) => r.run.id),
    failed = device instanceof Problem;
  document.title = `${nameOf(p, q)} · hightide`;
  return comparison(
    {
      before: p,
      after: q,
      told,
      device: failed ? null : device,
      whyNot: failed ? device.message : "",
      by,
      choose: (way) => app.set({ params: { ...app.get().params, by: way } }),
      along: alongOf(app),
      facts: (chosen) => {
        const line = commandLine([
          "hightide",
          "diff",
          a,
          b,
          ...(chosen && !ofHost(chosen) && chosen !== "site" ? ["--by", chosen] : []),
          ...(failed ? ["--html", "difference.html"] : []),
        ]);
        return [
          (!failed || runs) &&
            h(
              "span",
              {},
              saver(
                "One file to share",
                "This comparison as one HTML file, which needs nothing else",
                () => query("/diff/page", { a, b, by: ofHost(chosen) ? "site" : chosen }),
                "difference.html",
              ),
            ),
          runs && h("span", {}, copier(line, { class: "command" }, h("code", {}, line))),
        ];
      },
    },
    app,
  );
}
