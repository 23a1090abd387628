// One matrix: the page that `hightide bench --html` writes, from the server, and live while it is
// measured.

import type { MatrixPage } from "../../../api";
import "../../../matrix/matrix.css";
import { Model, type Packed } from "../../../matrix/model";
import { go, opened, type Opened } from "../../../matrix/page";
import { h } from "../../../views/dom";
import { get, Problem } from "../../api";
import { keepPlace } from "../../keepplace";
import { busy, failure } from "../../parts";
import type { App } from "../../state";
import { stream, type Stream } from "../../stream";
import type { Shown } from "../page";

export function matrixPage(app: App, part: string): Shown {
  const asking = new AbortController(),
    name = decodeURIComponent(part),
    waiting = busy(),
    body = h("div", { hidden: "" }),
    state = h("p", { class: "live-matrix", role: "status" });
  let shown: Opened | null = null,
    changed = -1,
    live: Stream | null = null;
  const ask = () =>
    void get<MatrixPage>(`/matrices/${encodeURIComponent(name)}`, asking.signal).then(
      (m) => {
        const firstTime = changed < 0,
          // before what stands above it comes or goes
          back = firstTime || m.changed_ns === changed ? null : keepPlace(body);
        waiting.remove();
        body.hidden = false;
        state.replaceChildren(
          ...(m.running
            ? [
                h("span", { class: "badge measured" }, "live"),
                " It is being measured now; the page follows.",
              ]
            : []),
        );
        if (m.changed_ns !== changed) {
          changed = m.changed_ns;
          shown?.close();
          shown = opened(new Model(m.page as Packed), app.get().dark);
          body.replaceChildren(...shown.elements);
          if (firstTime) setTimeout(() => go(shown!.page.get().at, "instant"));
          back?.();
        }
        if (m.running)
          live ??= stream(
            `/matrices/${encodeURIComponent(name)}/live`,
            `/matrices/${encodeURIComponent(name)}`,
            { changed: ask, end: ask },
          );
      },
      (e: unknown) => {
        if (
          asking.signal.aborted ||
          (shown && e instanceof Problem && (e.status === 0 || e.status === 503))
        )
          return;
        waiting.remove();
        body.hidden = false;
        body.replaceChildren(failure(e, ask));
      },
    );
  document.title = `${name} · hightide`;
  app.follow(["dark"], ({ dark }) => shown?.page.set({ dark }));
  ask();
  return {
    element: h("div", { class: "matrix-page" }, state, waiting, body),
    close: () => {
      asking.abort();
      live?.close();
      shown?.close();
    },
  };
}
