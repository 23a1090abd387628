// The search for the best settings of a trace, which runs as a job.

import type { ReplayVerdict, Side, Told } from "../../../api";
import { bytes, count, duration } from "../../../lib/format";
import { h } from "../../../views/dom";
import { begin, job as whole, type Progress } from "../../jobs";
import type { App } from "../../state";
import { stream, type Stream } from "../../stream";
import type { Limit } from "./knobpanel";

interface Found {
  search?: Side[] | null;
  best?: (Side & { gain_bytes: number; verdict?: ReplayVerdict }) | null;
  searched?: { settings: number; duration_ns: number };
  recorded: Side;
}

/** The search for the best settings, as a job. */
export function searching(
  app: App,
  id: string,
  limit: () => Limit,
  apply: (line: string) => void,
): { element: HTMLElement; close(): void } {
  const button = h("button", { type: "button", class: "button" }, "Search the best settings"),
    bar = h("progress", { hidden: "", "aria-label": "Settings tried" }),
    said = h("p", { class: "hint", role: "status" }),
    list = h("ul", { class: "found" });
  let live: Stream | null = null;
  const end = (text: string) => {
    bar.hidden = true;
    button.disabled = false;
    said.textContent = text;
  };
  button.addEventListener("click", () => {
    button.disabled = true;
    list.replaceChildren();
    void begin("search", {
      snapshot: id,
      device: app.get().device ? Number(app.get().device) : -1,
      ...limit(),
    }).then(
      (j) => {
        bar.hidden = false;
        live = stream(`/jobs/${j.id}/events`, `/jobs/${j.id}`, {
          told: ({ name, data }: Told) => {
            if (name !== "progress") return;
            const p = data as Progress;
            bar.max = p.all;
            bar.value = p.done;
            said.textContent = `${count(p.done)} of ${count(p.all)} settings tried`;
          },
          end: () =>
            void whole<Found>(j.id).then(
              ({ result: r, problem }) => {
                if (!r) return end(problem ?? "It ended without a result.");
                end(
                  `${count(r.searched?.settings ?? 0)} settings in ` +
                    `${duration(r.searched?.duration_ns ?? 0)}. ${foundText(r)}`,
                );
                list.replaceChildren(
                  ...shownOf(r).map((f) => {
                    const use = h(
                      "button",
                      { type: "button", class: "button", title: "Try these" },
                      h("code", {}, ...lines(f.alloc_conf || "default settings")),
                      h(
                        "small",
                        {},
                        `${bytes(f.peak_reserved_bytes)} reserved`,
                        (f.oom !== null || f.refused) && h("b", {}, "out of memory"),
                      ),
                    );
                    use.addEventListener("click", () => apply(f.alloc_conf));
                    return h("li", {}, use);
                  }),
                );
              },
              (e: unknown) => end(e instanceof Error ? e.message : String(e)),
            ),
        });
      },
      (e: unknown) => end(e instanceof Error ? e.message : String(e)),
    );
  });
  return {
    element: h("div", { class: "knob" }, button, bar, said, list),
    close: () => live?.close(),
  };
}

/** A line of settings that breaks between them, where it is too long. */
const lines = (conf: string) =>
  conf.split(/(?<=,)/).flatMap((setting, i) => (i > 0 ? [h("wbr"), setting] : [setting]));

/** What a search comes to, in words. */
function foundText({ best, recorded }: Found): string {
  if (!best) return "No setting is as good as the recorded one in every order of addresses.";
  const none = "No setting is better than the recorded one.",
    gain = best.gain_bytes;
  if (best.alloc_conf === recorded.alloc_conf)
    return gain > 0
      ? `${none} From a fresh start these reserve ${bytes(gain)} less than the record, ` +
          "which began with more cached."
      : none;
  if (best.verdict) return `The best: ${best.verdict.text}`;
  return gain > 0
    ? `The best reserves ${bytes(gain)} less and holds in every order of addresses.`
    : none;
}

const most = 6,
  plainly = "expandable_segments:True"; // which people try first

/** The best, what people try first, and the next best, each once. */
function shownOf({ best, search }: Found): Side[] {
  const all = search ?? [],
    plain = all.find((f) => f.alloc_conf === plainly),
    some = [...(best ? [best] : []), ...(plain ? [plain] : []), ...all];
  return some
    .filter((f, i) => some.findIndex((s) => s.alloc_conf === f.alloc_conf) === i)
    .slice(0, most);
}
