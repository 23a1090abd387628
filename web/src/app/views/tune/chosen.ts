// The plan that is chosen: its figures beside those of the program as it is, what it costs, and
// what to copy: the command, the plan, the patch.

import type { Patch, Plan, Point, TuneOutcome } from "../../../api";
import { save } from "../../../draw/save";
import { bytes, commandLine, sentence } from "../../../lib/format";
import { copier, h, type Child } from "../../../views/dom";
import { verdictTone, verdictWords } from "../../panels/catalogue";
import { savedPicture } from "../../../views/saved";
import { used } from "./chart";
import { courseChart, courseWords } from "./course";

const file = "hightide.plan.toml";

/** What can be said of a plan. */
export function chosenPlan(p: Point, r: TuneOutcome | null): HTMLElement[] {
  const changes = Object.keys(p.plan.levers).length > 0;
  return [
    h("h3", {}, sentence(p.what)),
    h(
      "p",
      { class: "facts" },
      h(
        "span",
        {},
        h(
          "span",
          { class: `outcome ${verdictTone(p.verdict.verdict)}` },
          verdictWords(p.verdict.verdict),
        ),
      ),
      p.recommended && h("span", {}, "recommended"),
      h("span", {}, p.numbers),
    ),
    figures(p, r),
    ...course(p, r),
    ...(changes ? toCopy(p, r?.command ?? []) : []),
    ...patchOf(p, r?.patch),
  ];
}

/** Memory over a step, once the tune has ended: until then the unchanged program's is not there. */
function course(p: Point, r: TuneOutcome | null): HTMLElement[] {
  if (!r) return [];
  const picture = savedPicture(
    () => "tune-step",
    () => `Memory over one step, ${p.what}`,
    (width) => courseChart(p, r.need_curve, width),
  );
  return [
    h("h4", {}, "Memory over one step"),
    h("p", { class: "hint" }, courseWords(p, r.need_curve)),
    ...(p.curve || r.need_curve ? [picture.element] : []),
  ];
}

const row = (name: string, ...value: Child[]): HTMLElement[] => [
  h("dt", {}, name),
  h("dd", {}, ...value),
];

function figures(p: Point, r: TuneOutcome | null): HTMLElement {
  const { verdict: v } = p,
    ran = v.verdict !== "oom",
    left = v.headroom_bytes,
    need = r?.need_bytes;
  return h(
    "dl",
    { class: "plan-figures" },
    ...row(
      "Peak of the device",
      ran && used(p) !== undefined
        ? `${bytes(used(p)!)} of ${bytes(v.total_bytes)}`
        : "not known: memory ran out before it",
      need !== undefined && ran && h("small", {}, `as it is, with plenty: ${bytes(need)}`),
    ),
    ...(ran && v.peak_allocated_bytes !== undefined
      ? row("Peak of the tensors", bytes(v.peak_allocated_bytes))
      : []),
    ...(ran && left !== undefined ? row("Left free", bytes(left)) : []),
    ...(p.also_runs_in_bytes !== undefined
      ? row("Ran also in", bytes(p.also_runs_in_bytes), h("small", {}, "without idle segments"))
      : []),
    ...row("Costs", sentence(p.costs)),
  );
}

/** A button that saves a text as a file. */
function saver(name: string, text: string): HTMLElement {
  const button = h("button", { type: "button", class: "button" }, `Save ${name}`);
  button.addEventListener("click", () => save(new Blob([text], { type: "text/plain" }), name));
  return button;
}

const line = (words: string[]): HTMLElement => {
  const text = commandLine(words);
  return copier(text, { class: "command" }, h("code", {}, text));
};

function toCopy(p: Point, command: string[]): HTMLElement[] {
  return [
    h("h4", {}, "To use it"),
    h(
      "p",
      { class: "hint" },
      `Save the plan as ${file} where the program is started. Nothing in the program changes.`,
    ),
    line(["hightide", "run", "--plan", file, "--", ...command]),
    h(
      "div",
      { class: "start-row" },
      saver(file, p.plan_file),
      copier(p.plan_file, { class: "button" }, "Copy the plan"),
    ),
    h(
      "details",
      { class: "calls" },
      h("summary", {}, "The plan"),
      h("pre", { class: "spec", tabindex: "0" }, p.plan_file),
    ),
  ];
}

/** Whether two plans change the same. Objects from JSON have their keys in one order. */
const same = (a: Plan, b: Plan): boolean => JSON.stringify(a.levers) === JSON.stringify(b.levers);

function patchOf(p: Point, patch: Patch | undefined): HTMLElement[] {
  if (!patch || !same(patch.plan, p.plan)) return [];
  return [
    h("h4", {}, "As a change of its own files"),
    h("p", { class: "hint" }, patch.says),
    ...(patch.text
      ? [
          line(["git", "-C", patch.folder, "apply", "hightide.plan.patch"]),
          h(
            "div",
            { class: "start-row" },
            saver("hightide.plan.patch", patch.text),
            copier(patch.text, { class: "button" }, "Copy the patch"),
          ),
          h("pre", { class: "spec", tabindex: "0" }, patch.text),
        ]
      : []),
  ];
}
