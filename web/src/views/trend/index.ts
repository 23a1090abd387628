// How the peak of a program, or another figure, changed from commit to commit: on the server's
// page, and in a file.

import type { Commit, CommitStatus, Trend } from "../../api";
import { bytes, count } from "../../lib/format";
import { copier, h, section } from "../dom";
import { curve, short } from "./curve";
import "../../style/forms.css";
import "./trend.css";

/** Which runs say nothing here. */
export const leftOut = ({ left_out: left }: Trend): HTMLElement | null =>
  left.length ? h("p", { class: "hint" }, `Left out: ${left.join(", ")}.`) : null;

/**
 * What is known of the commits: a sentence, the curve, the table, and what is left out. Without
 * choose, as in a file, nothing leads to a server: commands say which lines a commit changed.
 */
export function course(
  trend: Trend,
  at: string,
  choose: ((c: Commit) => void) | null,
): { parts: HTMLElement[]; stop: () => void } {
  const { commits } = trend;
  const place = h("div", { class: "trend-place" }),
    draw = () => {
      const chosen = commits.findIndex((c) => c.first_run === at);
      place.replaceChildren(
        curve(
          commits,
          Math.max(place.clientWidth, 320),
          chosen,
          choose && ((i) => choose(commits[i]!)),
        ),
      );
    },
    sized = new ResizeObserver(draw);
  sized.observe(place);
  const drawn = section(
    "trend",
    "Course",
    h("p", { class: "answer" }, answer(trend)),
    trend.note ? h("p", { class: "hint" }, trend.note) : null,
    place,
    h(
      "p",
      { class: "hint" },
      `A point is the mean of ${named(trend)} of a commit's runs, ${trend.label}; the stroke ` +
        "through it reaches from their lowest to their highest. The band stands around the " +
        "commit before: within it a change may be noise.",
    ),
  );
  return {
    parts: [drawn, section("commits", "Commits", table(commits, at, choose), leftOut(trend))],
    stop: () => sized.disconnect(),
  };
}

/** What the figure is called in a sentence. */
const named = ({ of, what }: Trend) => (of === "peak" ? `the peak ${what}` : what);

/** What the trend says, in one sentence. */
function answer(trend: Trend): string {
  const { commits, noise_unknown } = trend;
  const changed = commits.filter((c) => c.verdict === "changed");
  if (changed.length)
    return (
      `${changed.length === 1 ? "1 commit" : `${count(changed.length)} commits`} of ` +
      `${count(commits.length)} changed ${named(trend)} by more than its noise: ` +
      `${changed
        .map((c) => `${short(c)} by ${signed(c.change_bytes!)}`)
        .slice(-3)
        .join(", ")}.`
    );
  if (commits.length === 1) return "There is one commit, and nothing to hold it against.";
  if (noise_unknown) return `The noise is not known: ${noise_unknown}.`;
  return `No commit changed ${named(trend)} by more than its noise, where that is known.`;
}

/** A figure of a commit. What may be no more than was not told is no nothing. */
const told = (v: number, c: Commit) =>
  v || !c.error_bytes ? bytes(v) : `≤ ${bytes(c.error_bytes)}`;

const signed = (v: number) => (v < 0 ? `−${bytes(-v)}` : `+${bytes(v)}`);

function table(
  commits: readonly Commit[],
  at: string,
  choose: ((c: Commit) => void) | null,
): HTMLElement {
  const checked = commits.some((c) => c.statuses?.length),
    head = [
      ...["Commit", "Runs", "Mean", "Lowest", "Highest", "Change", "Noise", "Verdict"],
      ...(checked ? ["Checks"] : []),
      "Why",
    ];
  const rows = commits.map((c) => {
    return h(
      "tr",
      {
        class: c.verdict === "changed" ? "is-changed" : "",
        "aria-current": `${c.first_run === at}`,
      },
      h(
        "td",
        { class: "text" },
        choose ? h("a", { href: `/runs/${c.first_run}` }, short(c)) : h("code", {}, short(c)),
      ),
      h("td", {}, count(c.runs)),
      ...[c.mean_bytes, c.lowest_bytes, c.highest_bytes].map((v) => h("td", {}, told(v, c))),
      h("td", {}, c.change_bytes === undefined ? "" : signed(c.change_bytes)),
      h("td", {}, c.noise_bytes === undefined ? "" : `±${bytes(c.noise_bytes)}`),
      h("td", { class: "text" }, c.verdict ?? ""),
      checked && h("td", { class: "text checks" }, ...(c.statuses ?? []).map(check)),
      h("td", {}, c.before_run ? why(c, choose) : null),
    );
  });
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "commits" },
      h("thead", {}, h("tr", {}, ...head.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, ...rows.reverse()),
    ),
  );
}

/** How a check of a commit ended, and why; it leads to where more is told. */
function check(s: CommitStatus): HTMLElement {
  const said = `${s.context}: ${s.state}`,
    leads = /^https?:\/\//.test(s.target_url ?? "");
  return h(
    "div",
    { class: `check is-${s.state}` },
    leads ? h("a", { href: s.target_url!, rel: "noreferrer", target: "_blank" }, said) : said,
    s.description ? h("small", {}, ` ${s.description}`) : null,
  );
}

/** What leads to the lines that a commit changed. */
function why(c: Commit, choose: ((c: Commit) => void) | null): HTMLElement {
  if (!choose) {
    const command = `hightide diff ${c.before_run} ${c.first_run}`;
    return copier(command, { class: "command" }, h("code", {}, command));
  }
  const button = h("button", { type: "button", class: "button" }, "Lines");
  button.setAttribute("aria-label", `Which lines ${short(c)} changed`);
  button.addEventListener("click", () => choose(c));
  return button;
}
