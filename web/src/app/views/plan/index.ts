// Plan: which GPU a model needs, from its files alone. A form, and the answer as the command gives
// it. The form's values are in the address.

import "../../../style/forms.css";
import type { PlanAnswer } from "../../../api";
import { bytes, commandLine, count } from "../../../lib/format";
import { copier, h, section } from "../../../views/dom";
import { savedPicture } from "../../../views/saved";
import { tableBody } from "../../../views/tables";
import { post } from "../../api";
import { described, flags, form, options, wrong, type Field, type Values } from "../../fields";
import { announce } from "../../frame/announce";
import { busy, failure, givenUp } from "../../parts";
import settings from "../../settings.json";
import type { App } from "../../state";
import { filled } from "../imagine";
import type { Shown } from "../page";
import { drawn, measureOf, planChart } from "./chart";
import { inRequest, keep, ofAddress, parameters, read, type Sent } from "./sent";
import "./plan.css";

const fields = described(settings.plan);

/** The uses that a setting is of; what is not named here is of all. */
const uses: Readonly<Record<string, RegExp>> = {
  users: /^serve$/,
  utilization: /^serve$/,
  kv_dtype: /^(serve|infer)$/,
  batch: /^(?!serve$)/,
  optimizer: /^(?!serve$|infer$)/,
  no_checkpointing: /^(?!serve$|infer$)/,
  lora_rank: /^q?lora$/,
};
const isOf = (f: Field, values: Values) => uses[f.name]?.test(values.for || "serve") ?? true;

/** How long after the last key a changed form is asked again. */
const pause = 350;

/** The values of a use: what another use has is left out, as what is empty. */
function meant(all: Values): Values {
  return filled(
    Object.fromEntries(fields.filter((f) => isOf(f, all)).map((f) => [f.name, all[f.name] ?? ""])),
  );
}

/** As an address has it. */
function addressed({ model = "", ...use }: Values, sent: Sent | null): Values {
  return { ...use, ...(sent ? parameters(sent) : filled({ model })) };
}

/** The fields of other uses are hidden. */
function showOwn(element: HTMLElement, all: Values): void {
  for (const f of fields)
    element.querySelector(`[name="${f.name}"]`)!.parentElement!.hidden = !isOf(f, all);
}

function onEnter(element: HTMLElement, does: () => void): void {
  element.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && e.target instanceof HTMLInputElement) does();
  });
}

const says = "Drop a config.json, safetensors or GGUF: its header alone is sent";

export function planPage(app: App): Shown {
  let sent: Sent | null = null,
    [timer, asked] = [0, ""], // what was asked, as its address has it; "": nothing
    before: Values = app.get().params;
  const answer = answers();

  /** Asks for what the form says, and has the address say it. */
  const ask = () => {
    clearTimeout(timer);
    const is = meant(made.values()),
      { model, ...use } = is;
    if (lacks(is, sent)) return;
    before = addressed(is, sent);
    asked = JSON.stringify(before);
    app.set({ params: before });
    answer.ask({ ...options(fields, use), ...(sent ? inRequest(sent) : { model }) });
  };

  /** A change is asked for by itself, but a model that is typed. */
  const changed = (all: Values) => {
    const is = meant(all);
    showOwn(made.element, all);
    below.show(is, sent);
    clearTimeout(timer);
    const same = !asked || JSON.stringify(addressed(is, sent)) === asked;
    if (!same && (sent || is.model === before.model)) timer = window.setTimeout(ask, pause);
  };
  const take = async (files: File[]) => {
    await keep((sent = await read(files)));
    made.set("model", "");
    ask();
  };
  const taken = (files: File[]) => void take(files).catch(answer.fails);
  const forget = () => {
    sent = null;
    asked = "";
    answer.clear();
    changed(made.values());
    model.focus();
  };
  const below = foot({ ask, forget, take: taken });
  const made = form("plan", fields, before, changed);
  const model = made.element.querySelector<HTMLInputElement>('[name="model"]')!;
  model.addEventListener("input", () => {
    if (model.value) sent = null; // what is named is meant
  });
  onEnter(made.element, ask);

  /** What an address says that was opened, or gone back to. */
  const opened = async (params: Values) => {
    before = params;
    sent = await ofAddress(params);
    for (const f of fields) made.set(f.name, params[f.name] ?? "");
    if (sent || params.model) ask();
    else if (params.sent) answer.lacks(params.sent);
    else answer.clear();
  };
  if (before.model || before.sent) answer.waits();
  queueMicrotask(() => {
    void opened(before);
    app.follow(["params"], ({ params }) => {
      if (params !== before) void opened(params);
    });
  });
  return {
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, "Which GPU does a model need?"),
      section("plan", "What to plan", made.element, below.element),
      answer.element,
    ),
    drop: { says, files: taken },
    close: () => {
      clearTimeout(timer);
      answer.close();
    },
  };
}

/** What is missing or wrong before anything can be asked; "": nothing. */
const lacks = (is: Values, sent: Sent | null): string =>
  wrong(fields, is) || (sent || is.model ? "" : "Name a model, or drop its files.");

/** Below the form: what was dropped, the line to copy, and the buttons. */
function foot(does: { ask(): void; forget(): void; take(files: File[]): void }): {
  element: HTMLElement;
  show(is: Values, sent: Sent | null): void;
} {
  const hidden = { class: "unseen", tabindex: "-1", "aria-hidden": "true" },
    file = h("input", { type: "file", multiple: "", ...hidden }),
    choose = h("button", { type: "button", class: "button" }, "Choose its files"),
    go = h("button", { type: "button", class: "button primary" }, "Plan it"),
    from = h("p", { class: "sent" }),
    line = h("div", {}),
    missing = h("p", { class: "hint", role: "status" });
  choose.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    does.take([...(file.files ?? [])]);
    file.value = "";
  });
  go.addEventListener("click", does.ask);
  const row = h("div", { class: "start-row" }, go, choose, file, missing);
  return {
    element: h("div", {}, from, h("div", { class: "start" }, line, row)),
    show: (is, sent) => {
      const model = sent ? sent.name : is.model,
        text = commandLine(["hightide", "plan", ...flags(fields, is), model || "MODEL"]);
      line.replaceChildren(copier(text, { class: "command" }, h("code", {}, text)));
      missing.textContent = lacks(is, sent);
      go.disabled = missing.textContent !== "";
      from.replaceChildren(...sentLine(sent, does.forget));
    },
  };
}

/** The place of the answer: the newest that was asked for, or why there is none. */
function answers() {
  const into = h("div", { class: "planned" });
  let asking: AbortController | null = null;
  const show = (...content: HTMLElement[]) => {
    into.replaceChildren(...content);
    into.removeAttribute("aria-busy");
  };
  const waits = () => {
    into.setAttribute("aria-busy", "true");
    if (!into.querySelector("#plan-answer")) into.replaceChildren(waiting());
  };
  const ask = (body: object) => {
    asking?.abort();
    asking = new AbortController();
    waits();
    void post<PlanAnswer>("/plan", body, asking.signal).then(
      (r) => {
        show(...answerOf(r));
        announce(r.told.answer);
      },
      (e: unknown) => {
        if (!givenUp(e)) show(failure(e, () => ask(body)));
      },
    );
  };
  return {
    element: into,
    ask,
    waits,
    fails: (e: unknown) => show(failure(e)),
    lacks: (name: string) =>
      show(
        h(
          "p",
          { class: "banner", role: "note" },
          `This address is of files that another browser was given. Drop ${name} here.`,
        ),
      ),
    clear: () => {
      asking?.abort();
      show();
    },
    close: () => asking?.abort(),
  };
}

/** The place of an answer before it comes, so that nothing moves then. */
const waiting = (): HTMLElement => section("plan-answer", "Answer", busy(4));

/** What was dropped, and a button that forgets it; else that it can be. */
function sentLine(sent: Sent | null, drop: () => void): (Node | string)[] {
  if (!sent)
    return [
      "Or drop its config.json, safetensors or GGUF on this page: the headers alone are sent to " +
        "this server.",
    ];
  const forget = h("button", { type: "button", class: "plain" }, "Forget it");
  forget.addEventListener("click", drop);
  const size = sent.files.reduce((sum, f) => sum + f.head.length, 0),
    whole = sent.files.reduce((sum, f) => sum + f.bytes, 0),
    more = sent.files.length > 1 ? ` and ${count(sent.files.length - 1)} more` : "";
  return [
    h("span", {}, "Of ", h("code", {}, sent.name), more, sent.files.length ? "" : " as it is"),
    size ? h("span", {}, `${bytes(size)} of headers, of ${bytes(whole)}`) : "",
    forget,
  ];
}

/** The answer, as the command prints it. */
function answerOf(r: PlanAnswer): HTMLElement[] {
  const { told } = r,
    measure = measureOf(r).title,
    some = drawn(r);
  const picture = savedPicture(
    () => `plan-${r.model.name}`,
    () => `${measure}: ${r.model.name}`,
    (width) => planChart(r, width),
  );
  return [
    section(
      "plan-answer",
      "Answer",
      h("p", { class: "answer" }, h("b", {}, told.answer)),
      ...[told.model, ...told.remarks].map((text) => h("p", { class: "hint" }, text)),
    ),
    section(
      "plan-gpus",
      told.table.title,
      ...(some.length
        ? [
            h("h3", {}, measure),
            h(
              "p",
              { class: "hint" },
              `${count(some.length)} of ${count(r.rows.length)}, in the order of the table.`,
            ),
            picture.element,
          ]
        : []),
      tableBody(told.table),
      ...(told.parts ? [h("h3", {}, told.parts.title), tableBody(told.parts)] : []),
    ),
  ];
}
