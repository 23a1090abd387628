import type { Rank, Report } from "../../api";
import { duration, quantity } from "../../lib/format";
import { compared, type Compared } from "../../lib/ranks";
import type { PageStore } from "../../state/page";
import { badge, h, rich, section } from "../dom";
import "./ranks.css";

const namedBars = 16,
  mostButtons = 64;

/**
 * The ranks of a distributed program side by side, with who is suspected first. A click on a rank
 * is the selection that all panels obey.
 */
export function ranks(report: Report, page: PageStore): HTMLElement | null {
  const side = report.ranks;
  if (!side || side.ranks.length < 2) return null;
  const pick = (r: Rank) => page.set({ process: page.get().process === r.process ? 0 : r.process });
  const said = h("p", { class: "reading", role: "status" });
  const pictures = compared(side).map((c) => picture(c, side.ranks, pick, said)),
    buttons =
      side.ranks.length <= mostButtons ? side.ranks.map((r) => button(r, report, pick)) : [];
  page.follow(["process"], ({ process }) => {
    for (const { bars } of pictures)
      bars.forEach((b, i) => b.classList.toggle("picked", side.ranks[i]!.process === process));
    buttons.forEach((b, i) =>
      b.setAttribute("aria-pressed", String(side.ranks[i]!.process === process)),
    );
    const one = side.ranks.find((r) => r.process === process);
    said.textContent = one
      ? `Rank ${one.rank} is selected: every panel shows it alone where it can.`
      : "Click a rank to see it alone in every panel.";
  });
  return section(
    "ranks",
    `${side.ranks.length} ranks side by side`,
    suspects(report),
    h("div", { class: "rank-pick", role: "group", "aria-label": "Ranks" }, ...buttons),
    said,
    h("div", { class: "rank-cards" }, ...pictures.map((p) => p.element)),
    h(
      "p",
      { class: "hint" },
      "Bars begin at zero; those of host memory, of the device and of time are each drawn to " +
        "one scale. The dashed line is the median rank.",
    ),
  );
}

/**
 * Who is suspected, in the words of the findings; or what was compared without anybody standing
 * out.
 */
function suspects(report: Report): HTMLElement {
  const { suspects: all, not_compared: missing = [] } = report.ranks!,
    [first, ...rest] = all;
  const left = missing.length > 0 && h("p", { class: "hint" }, missing.join(" "));
  if (!first)
    return h(
      "div",
      {},
      h(
        "p",
        { class: missing.length ? "nothing" : "nothing well" },
        missing.length
          ? "In what was compared no rank stands out."
          : "No rank stands out: none works much longer, takes much more or failed before the " +
              "others.",
      ),
      left,
    );
  return h(
    "div",
    {},
    h(
      "div",
      { class: `suspect ${first.aspect === "failed" ? "bad" : ""}`, role: "note" },
      h(
        "p",
        {},
        h("b", {}, `First-cause suspect: rank ${first.rank}`),
        " ",
        h("span", { class: "kind" }, aspects[first.aspect]),
      ),
      h("p", {}, ...rich(first.text)),
      rest.length > 0 && h("ul", {}, ...rest.map((s) => h("li", {}, ...rich(s.text)))),
    ),
    left,
  );
}

const aspects = {
  failed: "failed first",
  work: "straggler",
  device: "most device memory",
  host: "most host memory",
};

function button(r: Rank, report: Report, pick: (r: Rank) => void): HTMLElement {
  const suspect = report.ranks!.suspects[0]?.process === r.process,
    failed = r.failed_ns !== undefined;
  const b = h(
    "button",
    {
      type: "button",
      class: `chip ${suspect ? "suspected" : ""}`,
      "aria-pressed": "false",
      title: failed ? `failed after ${duration(r.failed_ns!)}` : "",
    },
    `rank ${r.rank}`,
    failed && h("b", {}, "failed"),
    suspect && !failed && h("b", {}, "suspect"),
  );
  b.addEventListener("click", () => pick(r));
  return b;
}

/** One figure of all ranks, as bars. */
function picture(
  { measure, values, middle, top, most, suspect }: Compared,
  all: Rank[],
  pick: (r: Rank) => void,
  said: HTMLElement,
): { element: HTMLElement; bars: HTMLElement[] } {
  const text = (v: number | null) => quantity(v, measure.unit),
    label = measure.label(all[0]!);
  const bars = all.map((r, i) => {
    const v = values[i] ?? null,
      error = measure.error && r[measure.error];
    const bar = h(
      "div",
      {
        class: `rank-bar ${suspect === i ? "suspected" : ""}`,
        title: `rank ${r.rank}: ${text(v)}${error ? ` ± ${quantity(error, measure.unit)}` : ""}`,
      },
      v === null
        ? h("em", {}, "–")
        : h("i", { style: `height:${Math.max((Math.max(v, 0) / top) * 100, v > 0 ? 1.5 : 0)}%` }),
      all.length <= namedBars && h("small", {}, String(r.rank)),
    );
    bar.addEventListener("click", () => pick(r));
    bar.addEventListener("pointerenter", () => {
      said.textContent = `${measure.title}, ${bar.title}`;
    });
    return bar;
  });
  const highest = values[most]!,
    known = values.filter((v) => v !== null).length;
  const element = h(
    "figure",
    { class: "rank-card", style: `--ink:var(--${measure.ink})` },
    h(
      "figcaption",
      {},
      measure.title,
      measure.per && h("small", {}, measure.per),
      label !== "measured" && badge(label),
    ),
    h(
      "div",
      {
        class: "rank-bars",
        role: "img",
        "aria-label":
          `${measure.title} by rank: ` +
          (all.length <= mostButtons
            ? all.map((r, i) => `rank ${r.rank} ${text(values[i] ?? null)}`).join(", ")
            : `median ${text(middle)}, highest ${text(highest)} of rank ${all[most]!.rank}`),
      },
      h("div", {
        class: "rank-middle",
        style: `bottom:${Math.min(Math.max(middle / top, 0) * 100, 100)}%`,
      }),
      ...bars,
    ),
    h(
      "p",
      {},
      h("b", {}, text(highest)),
      highest === middle
        ? ` ${known < all.length ? `${known} ranks` : "all ranks"} alike`
        : ` rank ${all[most]!.rank}, median ${text(middle)}`,
    ),
  );
  return { element, bars };
}
