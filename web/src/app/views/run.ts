// One run: what its one-file report shows. Of a run that is recorded just now it is shown again as there is more to say.

import type { Report } from "../../api";
import { complete } from "../../state/report";
import { h } from "../../views/dom";
import { views } from "../../views";
import { get, Problem, report as fetchReport, type Run } from "../api";
import { busy, failure } from "../parts";
import type { App } from "../state";
import { stream, type Stream } from "../stream";
import type { Shown } from ".";

export function runPage(app: App, part: string): Shown {
  const id = decodeURIComponent(part), path = `/runs/${encodeURIComponent(id)}`, asking = new AbortController();
  const state = h("p", { class: "live-state", role: "status" }), body = h("div", { class: "run" }, busy());
  let live: Stream | null = null, sequence = 0;

  const show = (raw: Report) => {
    const whole = complete(raw), at = scrollY;
    document.title = `${whole.run.name || whole.run.id} · hightide`;
    body.style.minHeight = `${body.offsetHeight}px`; // what is below stays where it is while it is drawn again
    body.replaceChildren(...views.flatMap((view) => view(whole, app) ?? []));
    body.style.minHeight = "";
    scrollTo(0, at);
  };
  const load = async (): Promise<void> => {
    const mine = ++sequence;
    try {
      const raw = await fetchReport(id, asking.signal);
      if (mine === sequence) show(raw);
    } catch (problem) {
      if (asking.signal.aborted || mine !== sequence) return;
      body.replaceChildren(failure(problem, () => void load()));
    }
  };
  const follow = () => {
    state.replaceChildren(h("span", { class: "outcome live" }, "live"), " recorded just now");
    live = stream(`${path}/live`, path, {
      report: () => void load(),
      end: ({ text }: { text: string }) => { state.textContent = text; void load(); },
    }, () => { state.textContent = "The run was deleted."; });
  };
  void load();
  void get<Run>(path, asking.signal).then((row) => { if (row.state === "running" && !asking.signal.aborted) follow(); }, (e: unknown) => { if (!(e instanceof Problem) && !asking.signal.aborted) throw e; });
  return { element: h("div", {}, state, body), close: () => { asking.abort(); live?.close(); } };
}
