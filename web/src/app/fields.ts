// A form whose fields are flags of a command: from one list come the form, the line to copy, and
// the options of a job.

import { words } from "../lib/words";
import { h } from "../views/dom";

export interface Field {
  name: string; // of the job's option
  flag: string; // of the command line, as --gpu; "" for what is not a flag
  label: string;
  hint: string; // a sentence
  kind: "line" | "text" | "number" | "check" | "choice" | "array" | "object";
  part?: string; // of the form: model, what a command says itself
  choices?: [value: string, title: string][];
  example?: string;
  least?: number; // of a number that is whole
  more?: boolean; // among those that are folded away
}

// what is empty was not filled in; a check is "1"
/** A field as settings.json describes it, which is made of the settings of the commands. */
interface Described extends Omit<Field, "choices" | "kind"> {
  kind: string;
  choices?: string[];
  usual?: string; // the choice that is not said
}

export const described = (all: Described[]): Field[] =>
  all.map(({ choices, usual, ...f }) => ({
    ...f,
    kind: f.kind as Field["kind"],
    ...(choices
      ? { choices: choices.map((word) => [word === usual ? "" : word, word || "none"]) }
      : {}),
  }));

/** The words of a list, between spaces. */
const several = (value: string): string[] => value.split(/\s+/).filter(Boolean);

/** What stands left and right of a word's first "=". */
function pair(word: string): [string, string] {
  const at = word.indexOf("=");
  return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}

export type Values = Readonly<Record<string, string>>;

/** The flags that values make, in the fields' order. */
export const flags = (fields: Field[], values: Values): string[] =>
  fields.flatMap((f) => {
    const value = values[f.name] ?? "";
    if (!f.flag || !value) return [];
    if (f.kind === "array" || f.kind === "object")
      return several(value).flatMap((word) => [f.flag, word]);
    return f.kind === "check" ? [f.flag] : [f.flag, value];
  });

/** The options of a job that values make. A line that is not a command is an error. */
export function options(fields: Field[], values: Values): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const f of fields) {
    const value = (values[f.name] ?? "").trim();
    if (!value) continue;
    out[f.name] =
      f.kind === "number"
        ? Number(value)
        : f.kind === "check"
          ? true
          : f.kind === "line"
            ? words(value)
            : f.kind === "array"
              ? several(value)
              : f.kind === "object"
                ? Object.fromEntries(several(value).map(pair))
                : value;
  }
  return out;
}

/** What a number cannot be, in words; "": all can. */
export function wrong(fields: Field[], values: Values): string {
  const f = fields.find(
    (f) =>
      f.kind === "number" &&
      values[f.name] &&
      !(
        Number(values[f.name]) >= (f.least ?? 0) &&
        (f.least === undefined || Number.isSafeInteger(Number(values[f.name])))
      ),
  );
  if (!f) return "";
  return f.least === undefined
    ? `${f.label}: a number that is not negative.`
    : `${f.label}: a whole number from ${f.least} on.`;
}

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** What a field is entered in, with what it has at first. */
function inputOf(f: Field, common: Record<string, string>, given: string): Input {
  if (f.kind === "choice") {
    const input = h(
      "select",
      common,
      ...(f.choices ?? []).map(([value, title]) => h("option", { value }, title)),
    );
    input.value = given || f.choices?.[0]?.[0] || "";
    return input;
  }
  if (f.kind === "line") {
    const input = h("textarea", {
      ...common,
      rows: "2",
      spellcheck: "false",
      autocapitalize: "off",
      placeholder: f.example ?? "",
    });
    input.value = given;
    return input;
  }
  const input = h("input", {
    ...common,
    type: f.kind === "check" ? "checkbox" : f.kind === "number" ? "number" : "text",
    spellcheck: "false",
    placeholder: f.example ?? "",
    ...(f.kind === "number"
      ? { min: String(f.least ?? 0), step: f.least === undefined ? "any" : "1" }
      : {}),
  });
  if (f.kind === "check") input.checked = given === "1";
  else input.value = given;
  return input;
}

/** The form. told is called now and at every change. */
export function form(
  id: string,
  fields: Field[],
  first: Values,
  told: (values: Values) => void,
): { element: HTMLElement; values(): Values; set(name: string, value: string): void } {
  const inputs = new Map<string, Input>();
  const one = (f: Field): HTMLElement => {
    const about = `${id}-${f.name}-hint`,
      given = first[f.name] ?? "";
    const common = { id: `${id}-${f.name}`, name: f.name, "aria-describedby": about };
    const input = inputOf(f, common, given);
    inputs.set(f.name, input);
    input.addEventListener(f.kind === "choice" || f.kind === "check" ? "change" : "input", () =>
      told(values()),
    );
    const label = h("label", { for: common.id }, f.label),
      hint = h("small", { id: about }, f.hint);
    return h(
      "div",
      { class: `field ${f.kind}` },
      ...(f.kind === "check" ? [input, label, hint] : [label, input, hint]),
    );
  };
  const values = (): Values =>
    Object.fromEntries(
      [...inputs].map(([name, input]) => [
        name,
        input instanceof HTMLInputElement && input.type === "checkbox"
          ? input.checked
            ? "1"
            : ""
          : input.value.trim(),
      ]),
    );
  const always = fields.filter((f) => !f.more).map(one),
    folded = fields.filter((f) => f.more).map(one);
  const open = fields.some((f) => f.more && first[f.name]);
  const element = h(
    "div",
    { class: "form" },
    h("div", { class: "fields" }, ...always),
    folded.length > 0 &&
      h(
        "details",
        open ? { open: "" } : {},
        h("summary", {}, "More settings"),
        h("div", { class: "fields" }, ...folded),
      ),
  );
  queueMicrotask(() => told(values()));
  return {
    element,
    values,
    set: (name, value) => {
      const input = inputs.get(name);
      if (input) {
        if (input instanceof HTMLInputElement && input.type === "checkbox")
          input.checked = value === "1";
        else input.value = value;
        told(values());
      }
    },
  };
}
