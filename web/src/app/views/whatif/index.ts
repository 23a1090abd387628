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
  const settings = new Map<string, string>(),
    { settings: first, gpu, memory, maps: placing } = app.get().params;
  let limit: Limit = gpu ? { gpu } : memory ? { memory } : {},
    apart = placing === "apart",
    answer: WhatIf | null = null,
    record: { of: string; side: Side } | null = null,
    asking: AbortController | null = null,
    waiting = false,
    closed = false,
    touched = first !== undefined;
  const verdict = h("p", { class: "verdict-line", role: "status" }),
    said = h("p", { class: "said", role: "status" }),
    facts = h("dl", { class: "figures" }),
    line = h("div", { class: "line-to-copy" }),
    problem = h("div", {}),
    spread = h("p", { class: "hint" }),
    note = h("p", { class: "hint" }),
    label = h("span", {});
  const box = h("div", {
    class: "chart",
    role: "img",
    "aria-label": "Reserved memory as recorded and as replayed, event by event",
  });
  const inks = [
      ["curve-7", "reserved, as recorded"],
      ["curve-0", "reserved, as replayed"],
      ["curve-2", "in use"],
      ["limit", "the device"],
    ] as const,
    legend = h("p", { class: "phases" });
  const whole = h("button", { type: "button", class: "plain", hidden: "" }, "Show the peaks");
  whole.addEventListener("click", () => app.set({ at: null }));
  const everything = h("button", { type: "button", class: "plain", hidden: "" }, "Show all events");
  everything.addEventListener("click", () => app.set({ window: null }));

  // one request at a time while a slider moves, the last position when it comes to rest
  const ask = (now = false): void => {
    if (asking && !now) {
      waiting = true;
      return;
    }
    asking?.abort();
    waiting = false;
    const own = (asking = new AbortController()),
      { at, device, line, module, search } = app.get(),
      filter = {
        ...(line ? { line } : {}),
        ...(module ? { module } : {}),
        ...(search ? { q: search } : {}),
      },
      of = `${device} ${at} ${JSON.stringify(filter)}`,
      known = record?.of === of ? record.side : null;
    void post<WhatIf>(
      `/snapshots/${encodeURIComponent(id)}/whatif`,
      {
        ...(device ? { device: Number(device) } : {}),
        ...(touched ? { settings: written(settings) } : {}),
        ...limit,
        ...filter,
        ...(at !== null ? { event: Math.max(0, at - 1) } : {}),
        ...(known ? { known: true } : {}),
      },
      own.signal,
    ).then(
      (t) => {
        if (closed || asking !== own) return;
        // a server that read the file again may number them otherwise
        const same = !answer || answer.categories.every((name, i) => name === t.categories[i]);
        if (known && !same) {
          record = null;
          ask(true);
          return;
        }
        if (known) t.recorded = known; // it does not change with the settings: it comes once
        record = { of, side: t.recorded };
        asking = null;
        problem.replaceChildren();
        if (!answer && !touched) adopt(t.recorded.alloc_conf);
        answer = t;
        show();
        if (waiting) ask();
      },
      (e: unknown) => {
        if (own.signal.aborted || closed || asking !== own) return;
        asking = null;
        problem.replaceChildren(failure(e));
        if (waiting) ask();
      },
    );
  };
  // the form stands in the address: what is read from there is not written again
  let inAddress = app.get().params;
  const remember = () => {
    const { settings: _, gpu: __, memory: ___, maps: ____, ...others } = app.get().params;
    app.set({
      params: (inAddress = {
        ...others,
        ...(touched ? { settings: written(settings) } : {}),
        ...limit,
        ...(apart ? { maps: "apart" } : {}),
      }),
    });
  };
  const changed = (now: boolean) => {
    touched = true;
    ask(now);
    if (now) remember();
  };
  const {
    element: form,
    adopt,
    limit: adoptLimit,
  } = knobPanel(settings, changed, (to) => {
    limit = to;
    ask(true);
    remember();
  });
  if (first !== undefined) adopt(first);
  adoptLimit(limit);
  const segments = maps(app, apart, (to) => {
    apart = to;
    remember();
  });
  app.follow(["params"], ({ params }) => {
    // the reader went back
    if (params === inAddress) return;
    inAddress = params;
    [limit, apart, touched] = [
      params.gpu ? { gpu: params.gpu } : params.memory ? { memory: params.memory } : {},
      params.maps === "apart",
      params.settings !== undefined,
    ];
    adopt(params.settings ?? answer?.recorded.alloc_conf ?? "");
    adoptLimit(limit);
    segments.apart(apart);
    ask(true);
  });

  let drawn: { redraw(): void } | null = null;
  queueMicrotask(() => {
    if (!closed) drawn = chart(box, 280, () => curve(app, answer));
  });
  const show = () => {
    const t = answer!;
    verdict.hidden = !t.verdict;
    verdict.dataset.outcome = t.verdict?.outcome ?? "";
    const [first = "", ...rest] = (t.verdict?.text ?? "").split(/(?<=[.]) (?=[A-Z])/);
    verdict.replaceChildren(h("b", {}, first), ...(rest.length ? [` ${rest.join(" ")}`] : []));
    said.textContent = t.sentence;
    segments.show(t);
    const delta = (a: number, b: number, as: (n: number) => string) =>
        `${as(b)}${a === b ? "" : ` (${b > a ? "+" : "−"}${as(Math.abs(b - a))})`}`,
      waste = (s: Side) => s.peak_reserved_bytes - s.peak_allocated_bytes;
    facts.replaceChildren(
      ...(
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
      ).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))),
    );
    line.replaceChildren(
      ...(t.line
        ? [copier(t.line, { class: "command" }, h("code", {}, t.line))]
        : [h("p", { class: "hint" }, "These are the settings of the record.")]),
    );
    spread.textContent = t.exact
      ? `Every address of the record comes out of the model (rules of torch ${t.torch}). ` +
        "Addresses of new segments are made up, so ties between equal blocks may turn out " +
        "otherwise."
      : "The model does not place every block of this trace where the record has it, " +
        `so this is an estimate (rules of torch ${t.torch}).`;
    note.textContent = t.note ?? "";
    legend.replaceChildren(
      ...inks
        .filter(([ink]) => ink !== "limit" || t.capacity_bytes)
        .map(([ink, text]) => h("span", {}, h("i", { style: `background:var(--${ink})` }), text)),
    );
    whole.hidden = app.get().at === null;
    label.replaceChildren(badge(t.label) ?? "");
    drawn?.redraw();
  };
  let filter = "";
  app.follow(["line", "module", "search"], ({ line, module, search }) => {
    const now = JSON.stringify([line, module, search]),
      first = filter === "";
    if (now !== filter) {
      filter = now;
      if (!first) ask(true);
    }
  });
  let at = app.get().at,
    device = app.get().device;
  app.follow(["at", "device"], (s) => {
    if (s.at !== at || s.device !== device) {
      if (s.device !== device) answer = null;
      [at, device] = [s.at, s.device];
      ask(true);
    }
  });
  app.follow(["window"], ({ window }) => {
    everything.hidden = window === null;
    drawn?.redraw();
  });
  app.follow(["block"], ({ block }) => segments.choose(block));
  app.follow(["category"], ({ category }) => segments.category(category));
  const found = searching(
    app,
    id,
    () => limit,
    (line) => {
      adopt(line);
      changed(true);
    },
  );
  ask(true);
  const element = section(
    "whatif",
    "What if the allocator were set otherwise?",
    h(
      "div",
      { class: "whatif" },
      h("div", { class: "answer-part" }, verdict, said, problem, line, facts, note),
      h(
        "div",
        { class: "result" },
        h("div", { class: "tools" }, legend, everything, whole),
        box,
        segments.element,
        spread,
      ),
      h("div", { class: "knobs" }, found.element, form),
    ),
  );
  return {
    element,
    label,
    close: () => {
      closed = true;
      asking?.abort();
      found.close();
    },
  };
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
