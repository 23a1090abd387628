// The snapshots that can be looked at: files that were named or sent, and those that runs recorded.
// A file is dropped on the page or chosen.

import type { OpenedSnapshot, Run } from "../../../api";
import "../../../style/forms.css";
import { bytes, count, percent } from "../../../lib/format";
import { copier, h, section } from "../../../views/dom";
import { get, query, remove, runs as fetchRuns } from "../../api";
import { openFiles } from "../../frame/drop";
import { toast } from "../../frame/toast";
import { busy, empty, failure } from "../../parts";
import { titleOf, when } from "../../runlist";
import type { App } from "../../state";
import { followUploads, forget, uploads, type Upload } from "../../uploads";
import type { Shown } from "../page";
import "./snapshots.css";

const againMs = 700; // while a file is being read
const small = 16 << 20,
  mostRead = 12; // recordings that are read for their figures although nobody asked
const mostRecorded = 200;

const openKey = { keys: ["u"], does: "choose a file to open" };
/** Whether a file is still being read. */
const isRead = (o: OpenedSnapshot): boolean =>
  o.from !== "run" && (o.state === "reading" || o.state === "known");

const unseen = { class: "unseen", tabindex: "-1", "aria-hidden": "true" };

export function snapshotsPage(app: App): Shown {
  const asking = new AbortController(),
    hidden = new Set<string>();
  const field = h("input", { type: "file", multiple: "", ...unseen }),
    choose = h("button", { type: "button", class: "button primary" }, "Choose a file");
  const under = h("div", { class: "uploads" }),
    [open, recorded] = [h("div", {}, busy(2)), h("div", {}, busy(2))];
  const of = new Map<string, OpenedSnapshot>();
  let listed: OpenedSnapshot[] = [],
    [runs, timer]: [Run[] | null, number] = [null, 0];

  const draw = () => {
    const mine = listed.filter((o) => o.from !== "run" && !hidden.has(o.id));
    open.replaceChildren(openTable(mine, closing));
    if (!runs) return; // not known yet is not none
    const from = runs.filter((r) => (r.snapshots ?? 0) > 0);
    const known = (id: string) => of.get(id) ?? listed.find((o) => o.id === id);
    recorded.replaceChildren(recordedTable(from, known));
    if (from.length > mostRecorded) recorded.append(newestOnly(from.length));
  };
  const closing = (o: OpenedSnapshot) => {
    hidden.add(o.id);
    draw();
    const back = () => {
      hidden.delete(o.id);
      draw();
    };
    toastClosed(o, load, back);
  };
  const load = () =>
    void get<{ snapshots: OpenedSnapshot[] | null }>("/snapshots", asking.signal).then(
      ({ snapshots }) => {
        listed = snapshots ?? [];
        draw();
        clearTimeout(timer);
        if (listed.some(isRead)) timer = window.setTimeout(load, againMs);
      },
      (e: unknown) => {
        if (asking.signal.aborted) return;
        if (!listed.length) open.replaceChildren(failure(e, load));
        else timer = window.setTimeout(load, againMs); // what was listed stays meanwhile
      },
    );
  const loadRuns = () =>
    void fetchRuns("", asking.signal, 10_000)
      .then(async (answer) => {
        runs = answer.runs;
        draw();
        await figures(runs, asking.signal, of, draw);
      })
      .catch((e: unknown) => {
        if (!asking.signal.aborted && !runs) recorded.replaceChildren(failure(e, loadRuns));
      });

  choose.addEventListener("click", () => field.click());
  field.addEventListener("change", () => {
    openFiles(app, [...(field.files ?? [])]);
    field.value = "";
  });
  const ended = shownUploads(under, load);
  load();
  loadRuns();
  return {
    element: h(
      "div",
      { class: "job-page snapshots" },
      h("h1", {}, "Snapshots"),
      section("upload", "Open a file", dropPlace(choose, field), under),
      section("snapshots", "Open", open),
      section("recorded", "Recorded by runs", recorded),
    ),
    close: () => {
      asking.abort();
      ended();
      clearTimeout(timer);
    },
    keys: [{ title: "Snapshots", keys: [{ ...openKey, run: () => field.click() }] }],
    commands: () => [{ title: "Open a file", kind: "action", key: "u", run: () => field.click() }],
  };
}

/** The figures of the newest recorded snapshots, one after the other; told after each run's. */
async function figures(
  runs: Run[],
  signal: AbortSignal,
  of: Map<string, OpenedSnapshot>,
  told: () => void,
): Promise<void> {
  const some = runs.filter((r) => (r.snapshots ?? 0) > 0 && r.size_bytes < small);
  for (const run of some.slice(0, mostRead)) {
    const { snapshots } = await get<{ snapshots: OpenedSnapshot[] | null }>(
      query("/snapshots", { run: run.id }),
      signal,
    );
    for (const o of snapshots ?? [])
      of.set(o.id, await get<OpenedSnapshot>(`/snapshots/${encodeURIComponent(o.id)}`, signal));
    told();
  }
}

function openTable(mine: OpenedSnapshot[], close: (o: OpenedSnapshot) => void): HTMLElement {
  const alike = new Map<string, number>();
  /** Its name, numbered where files of several folders have the same. */
  const told = (o: OpenedSnapshot) => {
    const n = (alike.get(o.name) ?? 0) + 1;
    alike.set(o.name, n);
    return n > 1 ? `${o.name} (${n})` : o.name;
  };
  if (!mine.length)
    return empty(
      "No file is open",
      "Drop one above, or name it when the server starts. " +
        "torch.cuda.memory._dump_snapshot writes one.",
      "hightide ui snapshot.pickle",
    );
  return table(
    "Open snapshots",
    ["Snapshot", "From", "Size", "Devices", "Events", "Blocks", "Peak", ""],
    mine.map((o) => {
      const sent = o.from === "upload",
        end = action(
          "close",
          sent ? `Delete ${o.name}` : `Close ${o.name}`,
          sent ? "delete" : "close",
          () => close(o),
        );
      return row(told(o), o.id, o, o.from, o.size_bytes, [end]);
    }),
  );
}

/** The snapshots that runs recorded; known gives the figures of one, where they were read. */
function recordedTable(
  from: Run[],
  known: (id: string) => OpenedSnapshot | undefined,
): HTMLElement {
  if (!from.length)
    return empty(
      "No run recorded a snapshot",
      "A run keeps the state of PyTorch's allocator where it is told to, " +
        "and always where memory runs out on the device.",
      "hightide run --snapshot-on exit -- python train.py",
    );
  const rows = (run: Run) =>
    Array.from({ length: run.snapshots! }, (_, k) => {
      const id = `${run.id}-${k}`,
        title = titleOf(run),
        others = from.some((r) => r !== run && titleOf(r) === title);
      const name = [
        title,
        others && title !== run.id && run.id,
        run.snapshots! > 1 && (known(id)?.name ?? `number ${k + 1}`),
      ].filter(Boolean);
      return row(
        name.join(", "),
        id,
        known(id),
        when(run.start_wall_ns, Date.now()),
        run.size_bytes,
        [h("a", { href: `/runs/${encodeURIComponent(run.id)}` }, "run")],
      );
    });
  return table(
    "Recorded snapshots",
    ["Snapshot", "Recorded", "Run's size", "Devices", "Events", "Blocks", "Peak", ""],
    from.slice(0, mostRecorded).flatMap(rows),
  );
}

const newestOnly = (all: number): HTMLElement =>
  h(
    "p",
    { class: "hint" },
    `The newest ${count(mostRecorded)} of ${count(all)} runs with snapshots are listed.`,
  );

function dropPlace(choose: HTMLElement, field: HTMLElement): HTMLElement {
  const line = 'torch.cuda.memory._dump_snapshot("snapshot.pickle")';
  return h(
    "div",
    { class: "drop" },
    h("p", {}, "Drop a snapshot of PyTorch's allocator here, or anywhere on the page."),
    h(
      "div",
      { class: "drop-row" },
      choose,
      field,
      copier(line, { class: "command" }, h("code", {}, line)),
    ),
    h(
      "p",
      { class: "hint" },
      "A recording (run.hightide), a trace of PyTorch's profiler and a profile of " +
        "TensorFlow are opened too. The file goes to this server alone, " +
        "and is deleted when that ends.",
    ),
  );
}

/** The row of an upload. Tell writes how far it is; false: its state is another, and so its row. */
interface Sending {
  element: HTMLElement;
  tell(): boolean;
}

/** An upload as it stands: how much was sent, what the server does, why it failed. */
function sending(upload: Upload): Sending {
  const state = upload.state,
    said = h("span", {});
  const end = h(
    "button",
    {
      type: "button",
      class: "plain",
      "aria-label": state === "failed" ? `Forget ${upload.name}` : `Cancel ${upload.name}`,
    },
    state === "failed" ? "forget" : "cancel",
  );
  end.addEventListener("click", () => {
    if (upload.state === "failed") forget(upload);
    else upload.cancel();
  });
  const bar =
    state === "sending"
      ? h("progress", {
          max: String(upload.size),
          "aria-label": `How much of ${upload.name} was sent`,
        })
      : state === "reading"
        ? h("progress", { "aria-label": `${upload.name} is being read` })
        : null;
  const tell = () => {
    if (upload.state !== state) return false;
    said.textContent = {
      waiting: "waits",
      sending:
        `${bytes(upload.sent)} of ${bytes(upload.size)}, ` +
        `${percent((upload.sent / upload.size) * 1000)}`,
      reading: "the server reads it",
      done: "open",
      failed: upload.problem,
    }[state];
    if (state === "sending") bar?.setAttribute("value", String(upload.sent));
    return true;
  };
  tell();
  return {
    element: h(
      "div",
      { class: `upload ${state}`, ...(state === "failed" ? { role: "alert" } : {}) },
      h("strong", {}, upload.name),
      said,
      end,
      bar,
    ),
    tell,
  };
}

const action = (name: string, label: string, text: string, act: () => void) => {
  const button = h("button", { type: "button", class: `plain ${name}`, "aria-label": label }, text);
  button.addEventListener("click", act);
  return button;
};

const table = (title: string, heads: string[], rows: HTMLElement[]) =>
  h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": title },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...heads.map((t, i) =>
            h(
              "th",
              { scope: "col", class: i > 1 && i < heads.length - 1 ? "number" : "" },
              t || h("span", { class: "unseen" }, "What can be done"),
            ),
          ),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
  );

function row(
  name: string,
  id: string,
  o: OpenedSnapshot | undefined,
  from: string,
  size: number | undefined,
  more: HTMLElement[],
): HTMLElement {
  const path = `/snapshots/${encodeURIComponent(id)}`,
    devices = o?.devices ?? [],
    sum = (of: "events" | "blocks") => devices.reduce((n, d) => n + d[of], 0);
  const figure = (text: string | false) =>
    h(
      "td",
      { class: "number", title: text ? "" : o?.state === "failed" ? "" : "Known once it was read" },
      text || "–",
    );
  const bad = o?.state === "failed";
  return h(
    "tr",
    { "data-id": id },
    h(
      "td",
      { class: "text" },
      bad ? name : h("a", { href: path }, name),
      bad && h("small", { class: "problem" }, o.problem ?? ""),
    ),
    h(
      "td",
      {},
      bad
        ? h("span", { class: "outcome bad" }, "cannot be read")
        : o?.state === "reading"
          ? h("span", { class: "outcome live" }, "reading")
          : from,
    ),
    figure(size !== undefined && size > 0 && bytes(size)),
    figure(
      devices.length > 0 &&
        (devices.length === 1
          ? devices[0]!.name || `device ${devices[0]!.device}`
          : count(devices.length)),
    ),
    figure(devices.length > 0 && count(sum("events"))),
    figure(devices.length > 0 && count(sum("blocks"))),
    figure(devices.length > 0 && bytes(Math.max(...devices.map((d) => d.peak_bytes)))),
    h(
      "td",
      { class: "links" },
      !bad && h("a", { href: `${path}/whatif` }, "what if"),
      !bad && h("a", { href: query("/diff", { a: id }) }, "compare"),
      ...more,
    ),
  );
}

/** Shows the uploads as they stand, until what it returns is called; done: one has ended well. */
function shownUploads(under: HTMLElement, done: () => void): () => void {
  let active = 0;
  const shown = new Map<Upload, Sending>();
  const progress = () => {
    const now = uploads();
    for (const gone of [...shown.keys()].filter((u) => !now.includes(u))) shown.delete(gone);
    for (const upload of now)
      // a row stays while its state does: its button is being pressed
      if (shown.get(upload)?.tell() !== true) shown.set(upload, sending(upload));
    const rows = now.map((u) => shown.get(u)!.element);
    if (rows.length !== under.childElementCount || rows.some((r, i) => under.children[i] !== r))
      under.replaceChildren(...rows);
    const left = now.filter((u) => u.state !== "failed").length;
    if (left < active) done();
    active = left;
  };
  progress();
  return followUploads(progress);
}

/** Closes or deletes a file when the time to undo is over. */
function toastClosed(o: OpenedSnapshot, done: () => void, back: () => void): void {
  const then = () =>
    void remove(`/snapshots/${encodeURIComponent(o.id)}`).then(done, (e: Error) => {
      toast(e.message, { bad: true });
      back();
    });
  const said = o.from === "upload" ? `${o.name} deleted` : `${o.name} closed; the file stays`;
  toast(said, { undo: back, then });
}
