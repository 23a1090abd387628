// What every machine of a team holds: on the server's page, and in a file.

import type { FleetHolding, Named, Node, Overview, Waste } from "../../api";
import { bytes, count } from "../../lib/format";
import { h, section, type Child } from "../dom";
import "../../style/forms.css";
import "./fleet.css";

/** What is not known, and why. */
export const unknown = ({ notes }: Overview): HTMLElement | null =>
  notes.length
    ? section("unknown", "Not known", h("ul", {}, ...notes.map((n) => h("li", {}, `${n}.`))))
    : null;

/** What a run is called: on the server's page a link, in a file its id. */
export type RunOf = (id: string) => Child;

/** What machines hold. */
export function holdings(v: Overview, run: RunOf): HTMLElement[] {
  return parts(v, run).filter((part) => part !== null);
}

function parts(v: Overview, run: RunOf): (HTMLElement | null)[] {
  return [
    h("p", { class: "answer" }, answer(v)),
    section(
      "look",
      "To look at",
      ...named(
        run,
        "Idle",
        v.idle,
        "No process that holds memory was seen to do nothing for long.",
      ),
      ...named(run, "Leaks", v.leaks, "Nothing was seen to grow steadily."),
      ...named(
        run,
        "Far too large",
        v.oversized,
        "No reservation was seen far above its peak for an hour.",
      ),
    ),
    section("machines", "Machines", machines(v.machines)),
    section(
      "people",
      "People",
      held("Person", v.people, run),
      h(
        "p",
        { class: "hint" },
        "GPU bytes are as drivers put them down to processes. RSS counts shared pages in each " +
          "process, PSS once. A dash is not known: nobody could look, or no driver tells.",
      ),
    ),
    v.jobs.length ? section("held-by-jobs", "Jobs", held("Job", v.jobs, run)) : null,
    v.costs.length ? section("costs", "Reserved and not used", costs(v.costs)) : null,
    unknown(v),
  ];
}

/** The page in one sentence. */
function answer(v: Overview): string {
  const there = v.machines.filter((m) => !m.away),
    cards = there.flatMap((m) => m.state.gpus),
    known = cards.filter((c) => c.used_bytes !== undefined && c.memory_bytes !== undefined),
    sum = (of: (typeof cards)[number][], key: "used_bytes" | "memory_bytes") =>
      of.reduce((all, c) => all + c[key]!, 0),
    idle = v.idle.filter((n) => n.what === "device").reduce((all, n) => all + n.bytes, 0);
  const parts = [
    `${count(there.length)} of ${several(v.machines.length, "machine")} ` +
      `${there.length === 1 ? "tells" : "tell"} now`,
  ];
  if (known.length)
    parts.push(
      `${bytes(sum(known, "used_bytes"))} of ${bytes(sum(known, "memory_bytes"))} of ` +
        `${several(known.length, "GPU")} are taken`,
    );
  else parts.push("of no GPU it is known what is taken");
  if (idle) parts.push(`processes that do nothing hold ${bytes(idle)} of GPUs`);
  return `${parts.join("; ")}.`;
}

const several = (n: number, what: string) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const known = (v: number | undefined) => (v === undefined ? "–" : bytes(v));

function table(name: string, head: readonly string[], rows: HTMLElement[]): HTMLElement {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${name}` },
    h(
      "table",
      { class: "fleet-table" },
      h("thead", {}, h("tr", {}, ...head.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, ...rows),
    ),
  );
}

const text = (...of: Child[]) => h("td", { class: "text" }, ...of);

function named(run: RunOf, title: string, all: readonly Named[], none: string): Child[] {
  const heading = h("h3", {}, title);
  if (!all.length) return [heading, h("p", { class: "hint" }, none)];
  return [
    heading,
    table(
      title,
      ["Machine", "Whose", "Program", "What", "Run"],
      all.map((n) =>
        h(
          "tr",
          {},
          text(n.machine),
          text(n.person),
          text(n.job ? `${n.job}: ` : "", h("code", {}, n.program), n.pid ? ` (${n.pid})` : ""),
          h("td", { class: "text says" }, n.text),
          text(n.run ? run(n.run) : null),
        ),
      ),
    ),
  ];
}

function machines(all: readonly Node[]): HTMLElement {
  const rows = all.flatMap(({ name, away, state }) => {
    const host = [
        h("td", {}, known(state.available_bytes)),
        h("td", {}, known(state.memory_bytes)),
      ],
      first = text(name, away ? " (away)" : "");
    if (!state.gpus.length) {
      const none = text("none known");
      none.setAttribute("colspan", "4");
      return [h("tr", { class: away ? "is-away" : "" }, first, none, ...host)];
    }
    return state.gpus.map((c, i) =>
      h(
        "tr",
        { class: away ? "is-away" : "" },
        i ? text("") : first,
        text(`${c.device} ${c.name}`),
        h("td", {}, meter(c.used_bytes, c.memory_bytes), known(c.used_bytes)),
        h("td", {}, known(c.memory_bytes)),
        h(
          "td",
          {},
          c.utilisation_milli === undefined ? "–" : `${Math.round(c.utilisation_milli / 10)} %`,
        ),
        ...(i ? [h("td", {}), h("td", {})] : host),
      ),
    );
  });
  return table("Machines", ["Machine", "GPU", "Taken", "Of", "Busy", "Host free", "Of"], rows);
}

/** A bar of what is taken of a GPU, for the eye: the figures stand beside it. */
function meter(used: number | undefined, of: number | undefined): HTMLElement | null {
  if (used === undefined || !of) return null;
  const share = Math.min(100, (100 * used) / of);
  return h(
    "span",
    { class: "meter", "aria-hidden": "true" },
    h("i", { style: `width:${share.toFixed(1)}%` }),
  );
}

function held(what: string, all: readonly FleetHolding[], run: RunOf): HTMLElement {
  return table(
    what,
    [
      what,
      ...(what === "Job" ? ["Whose", "Project"] : []),
      "Machines",
      "GPU",
      "RSS",
      "PSS",
      "Line",
      "Runs",
    ],
    all.map((one) =>
      h(
        "tr",
        {},
        text(one.name),
        ...(what === "Job" ? [text(one.person ?? ""), text(one.project ?? "–")] : []),
        text(one.machines.join(", ")),
        h("td", {}, known(one.device_bytes)),
        h("td", {}, bytes(one.rss_bytes)),
        h("td", {}, known(one.pss_bytes)),
        text(
          one.line
            ? `${one.line.place}: ${bytes(one.line.bytes)} ± ${bytes(one.line.error_bytes)} ` +
                "of the host's heap"
            : "–",
        ),
        text(...one.runs.flatMap((id, i) => [i ? ", " : "", run(id)])),
      ),
    ),
  );
}

const hours = (ms: number) => `${(ms / 3_600_000).toFixed(1)} h`,
  gibHours = (mib: number) => `${(mib / 1024 / 3600).toFixed(1)} GiB h`;

function costs(all: readonly Waste[]): HTMLElement {
  return table(
    "Reserved and not used",
    ["Month", "Project", "Of", "Whose", "Reserved", "Not used", "Cost of that"],
    all.map((c) =>
      h(
        "tr",
        {},
        text(c.month),
        text(c.project || "not known"),
        text(c.gpu || "memory of hosts"),
        text(c.people.join(", ")),
        h("td", {}, c.gpu ? hours(c.held_ms) : gibHours(c.reserved_mib_s)),
        h("td", {}, c.gpu ? hours(c.idle_ms) : gibHours(c.unused_mib_s)),
        h(
          "td",
          {},
          c.wasted_cents === undefined
            ? "no price"
            : `${(c.wasted_cents / 100).toFixed(2)} ${c.currency ?? ""}`.trim(),
        ),
      ),
    ),
  );
}
