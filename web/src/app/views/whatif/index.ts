// What if: the trace of a snapshot under other allocator settings or on another GPU, replayed while
// a slider moves. Both curves and both segment maps lie on one scale; they obey and set the
// selection of the page.

import "../explorer/explorer.css";
import "../../../style/forms.css";
import type { Side, WhatIf } from "../../../api";
import { chart } from "../../../draw/chart";
import { bytes, count } from "../../../lib/format";
import { badge, copier, h, section } from "../../../views/dom";
import { get, post } from "../../api";
import { written } from "../../knobs";
import { failure } from "../../parts";
import { chosen } from "../../../state/selection";
import { sameOn, type App } from "../../state";
import type { Shown } from "../page";
import { curve } from "./curve";
import { knobPanel, type Limit } from "./knobpanel";
import { maps } from "./maps";
import { searching } from "./searching";
import "./whatif.css";

function panel(app: App, id: string): Shown & { label: HTMLElement } {
  const tried = new Tried(app, id);
  return { element: tried.element, label: tried.label, close: () => tried.close() };
}

const inks = [
  ["curve-7", "reserved, as recorded"],
  ["curve-0", "reserved, as replayed"],
  ["curve-2", "in use"],
  ["limit", "the device"],
] as const;

const limitOf = ({ gpu, memory }: Readonly<Record<string, string>>): Limit =>
  gpu ? { gpu } : memory ? { memory } : {};

const plain = (text: string, then: () => void): HTMLElement => {
  const b = h("button", { type: "button", class: "plain", hidden: "" }, text);
  b.addEventListener("click", then);
  return b;
};

function filterOf(app: App): Record<string, string> {
  const { line, module, search } = app.get();
  return {
    ...(line ? { line } : {}),
    ...(module ? { module } : {}),
    ...(search ? { q: search } : {}),
  };
}

/** The figures of the replay, with what differs from the record. */
function figures(t: WhatIf): HTMLElement[] {
  const delta = (a: number, b: number, as: (n: number) => string) =>
      `${as(b)}${a === b ? "" : ` (${b > a ? "+" : "−"}${as(Math.abs(b - a))})`}`,
    waste = (s: Side) => s.peak_reserved_bytes - s.peak_allocated_bytes;
  return (
    [
      [
        "Peak reserved",
        delta(t.recorded.peak_reserved_bytes, t.replayed.peak_reserved_bytes, bytes),
      ],
      ["Above what tensors hold", delta(waste(t.recorded), waste(t.replayed), bytes)],
      ["Calls of the driver", delta(t.recorded.segment_calls, t.replayed.segment_calls, count)],
      [
        "Cache emptied for lack of memory",
        delta(t.recorded.alloc_retries, t.replayed.alloc_retries, count),
      ],
      ...(t.recorded.refused || t.replayed.refused
        ? [["Requests refused", delta(t.recorded.refused ?? 0, t.replayed.refused ?? 0, count)]]
        : []),
    ] as [string, string][]
  ).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)));
}

const spreadOf = (t: WhatIf): string =>
  t.exact
    ? `Every address of the record comes out of the model (rules of torch ${t.torch}). ` +
      "Addresses of new segments are made up, so ties between equal blocks may turn out " +
      "otherwise."
    : "The model does not place every block of this trace where the record has it, " +
      `so this is an estimate (rules of torch ${t.torch}).`;

class Tried {
  readonly element: HTMLElement;
  readonly label = h("span", {});
  private readonly verdict = h("p", { class: "verdict-line", role: "status" });
  private readonly said = h("p", { class: "said", role: "status" });
  private readonly facts = h("dl", { class: "figures" });
  private readonly line = h("div", { class: "line-to-copy" });
  private readonly problem = h("div", {});
  private readonly spread = h("p", { class: "hint" });
  private readonly note = h("p", { class: "hint" });
  private readonly box = h("div", {
    class: "chart",
    role: "img",
    "aria-label": "Reserved memory as recorded and as replayed, event by event",
  });
  private readonly legend = h("p", { class: "phases" });
  private readonly whole = plain("Show the peaks", () => this.app.set({ at: null }));
  private readonly everything = plain("Show all events", () => this.app.set({ window: null }));

  private readonly settings = new Map<string, string>();
  private limit: Limit;
  private apart: boolean;
  private touched: boolean; // the form is not as the record has it
  private answer: WhatIf | null = null;
  private record: { of: string; side: Side } | null = null;
  private asking: AbortController | null = null;
  private waiting = false;
  private closed = false;
  // the form stands in the address: what is read from there is not written again
  private inAddress: Readonly<Record<string, string>>;
  private readonly knobs: ReturnType<typeof knobPanel>;
  private readonly segments: ReturnType<typeof maps>;
  private readonly found: ReturnType<typeof searching>;
  private drawn: { redraw(): void } | null = null;
  private readonly app: App;
  private readonly id: string;

  constructor(app: App, id: string) {
    [this.app, this.id, this.inAddress] = [app, id, app.get().params];
    const { params } = app.get();
    [this.limit, this.apart] = [limitOf(params), params.maps === "apart"];
    this.touched = params.settings !== undefined;
    this.knobs = knobPanel(this.settings, this.changed, (to) => {
      this.limit = to;
      this.ask(true);
      this.remember();
    });
    if (params.settings !== undefined) this.knobs.adopt(params.settings);
    this.knobs.limit(this.limit);
    this.segments = maps(app, this.apart, (to) => {
      this.apart = to;
      this.remember();
    });
    this.found = searching(
      app,
      id,
      () => this.limit,
      (line) => {
        this.knobs.adopt(line);
        this.changed(true);
      },
    );
    this.followForm();
    queueMicrotask(() => {
      if (!this.closed) this.drawn = chart(this.box, 280, () => curve(app, this.answer));
    });
    this.followPage();
    this.ask(true);
    this.element = this.made();
  }

  close(): void {
    this.closed = true;
    this.asking?.abort();
    this.found.close();
  }

  private made(): HTMLElement {
    const answer = [this.verdict, this.said, this.problem, this.line, this.facts, this.note];
    return section(
      "whatif",
      "What if the allocator were set otherwise?",
      h(
        "div",
        { class: "whatif" },
        h("div", { class: "answer-part" }, ...answer),
        h(
          "div",
          { class: "result" },
          h("div", { class: "tools" }, this.legend, this.everything, this.whole),
          ...[this.box, this.segments.element, this.spread],
        ),
        h("div", { class: "knobs" }, this.found.element, this.knobs.element),
      ),
    );
  }

  /** The reader went back: the form is as the address has it. */
  private followForm(): void {
    this.app.follow(["params"], ({ params }) => {
      if (params === this.inAddress) return;
      this.inAddress = params;
      [this.limit, this.apart] = [limitOf(params), params.maps === "apart"];
      this.touched = params.settings !== undefined;
      this.knobs.adopt(params.settings ?? this.answer?.recorded.alloc_conf ?? "");
      this.knobs.limit(this.limit);
      this.segments.apart(this.apart);
      this.ask(true);
    });
  }

  private followPage(): void {
    const { app } = this;
    let filter = "",
      { at, device } = app.get();
    app.follow(["line", "module", "search"], ({ line, module, search }) => {
      const now = JSON.stringify([line, module, search]),
        first = filter === "";
      if (now === filter) return;
      filter = now;
      if (!first) this.ask(true);
    });
    app.follow(["at", "device"], (s) => {
      if (s.at === at && s.device === device) return;
      if (s.device !== device) this.answer = null;
      [at, device] = [s.at, s.device];
      this.ask(true);
    });
    app.follow(["window"], ({ window }) => {
      this.everything.hidden = window === null;
      this.drawn?.redraw();
    });
    app.follow(["block"], ({ block }) => this.segments.choose(block));
    app.follow(["category"], ({ category }) => this.segments.category(category));
  }

  /** One request at a time while a slider moves, the last position when it comes to rest. */
  private ask(now = false): void {
    if (this.asking && !now) {
      this.waiting = true;
      return;
    }
    this.asking?.abort();
    this.waiting = false;
    const own = (this.asking = new AbortController()),
      { at, device } = this.app.get(),
      filter = filterOf(this.app),
      of = `${device} ${at} ${JSON.stringify(filter)}`,
      known = this.record?.of === of ? this.record.side : null;
    void post<WhatIf>(
      `/snapshots/${encodeURIComponent(this.id)}/whatif`,
      {
        ...(device ? { device: Number(device) } : {}),
        ...(this.touched ? { settings: written(this.settings) } : {}),
        ...this.limit,
        ...filter,
        ...(at !== null ? { event: Math.max(0, at - 1) } : {}),
        ...(known ? { known: true } : {}),
      },
      own.signal,
    ).then(
      (t) => {
        if (!this.closed && this.asking === own) this.took(t, of, known);
      },
      (e: unknown) => {
        if (own.signal.aborted || this.closed || this.asking !== own) return;
        this.asking = null;
        this.problem.replaceChildren(failure(e));
        if (this.waiting) this.ask();
      },
    );
  }

  /** Shows an answer; known: the side of the record, which was not asked for again. */
  private took(t: WhatIf, of: string, known: Side | null): void {
    // a server that read the file again may number them otherwise
    const same =
      !this.answer || this.answer.categories.every((name, i) => name === t.categories[i]);
    if (known && !same) {
      this.record = null;
      this.ask(true);
      return;
    }
    if (known) t.recorded = known; // it does not change with the settings: it comes once
    this.record = { of, side: t.recorded };
    this.asking = null;
    this.problem.replaceChildren();
    if (!this.answer && !this.touched) this.knobs.adopt(t.recorded.alloc_conf);
    this.answer = t;
    this.show();
    if (this.waiting) this.ask();
  }

  private remember() {
    const { settings: _, gpu: __, memory: ___, maps: ____, ...others } = this.app.get().params;
    this.app.set({
      params: (this.inAddress = {
        ...others,
        ...(this.touched ? { settings: written(this.settings) } : {}),
        ...this.limit,
        ...(this.apart ? { maps: "apart" } : {}),
      }),
    });
  }

  private readonly changed = (now: boolean) => {
    this.touched = true;
    this.ask(now);
    if (now) this.remember();
  };

  private show() {
    const t = this.answer!;
    this.verdict.hidden = !t.verdict;
    this.verdict.dataset.outcome = t.verdict?.outcome ?? "";
    const [first = "", ...rest] = (t.verdict?.text ?? "").split(/(?<=[.]) (?=[A-Z])/);
    this.verdict.replaceChildren(h("b", {}, first), ...(rest.length ? [` ${rest.join(" ")}`] : []));
    this.said.textContent = t.sentence;
    this.segments.show(t);
    this.facts.replaceChildren(...figures(t));
    this.line.replaceChildren(
      ...(t.line
        ? [copier(t.line, { class: "command" }, h("code", {}, t.line))]
        : [h("p", { class: "hint" }, "These are the settings of the record.")]),
    );
    this.spread.textContent = spreadOf(t);
    this.note.textContent = t.note ?? "";
    this.legend.replaceChildren(
      ...inks
        .filter(([ink]) => ink !== "limit" || t.capacity_bytes)
        .map(([ink, text]) => h("span", {}, h("i", { style: `background:var(--${ink})` }), text)),
    );
    this.whole.hidden = this.app.get().at === null;
    this.label.replaceChildren(badge(t.label) ?? "");
    this.drawn?.redraw();
  }
}

/** The panel as a page of its own. */
export function whatIfPage(app: App, part: string): Shown {
  const id = decodeURIComponent(part),
    { label, ...shown } = panel(app, id),
    back = h("a", {}, "The snapshot"),
    asking = new AbortController();
  void get<{ name: string }>(`/snapshots/${encodeURIComponent(id)}`, asking.signal).then(
    ({ name }) => {
      back.textContent = `The snapshot ${name}`;
    },
    () => undefined,
  ); // the panel says what failed
  app.follow([...chosen], (state) => {
    back.setAttribute("href", sameOn(state, `/snapshots/${encodeURIComponent(id)}`));
  });
  return {
    ...shown,
    close: () => {
      asking.abort();
      shown.close?.();
    },
    element: h(
      "div",
      { class: "job-page" },
      h("h1", {}, "What if?"),
      h("p", { class: "facts of-file" }, label, h("span", {}, back)),
      shown.element,
    ),
  };
}
