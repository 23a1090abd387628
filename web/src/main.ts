// The page of one report:  JSON in the page ──▶ state ──▶ views, which draw themselves.

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/tracks.css";
import "./style/ranks.css";
import "./style/learn.css";
import "./style/print.css";
import type { Report } from "./api";
import { darkAtFirst, elsewhere, painted } from "./draw/paint";
import { embedded } from "./lib/embedded";
import { inHash } from "./state/hash";
import { complete, processName } from "./state/report";
import { none, undoing } from "./state/selection";
import { store, type Page } from "./state/store";
import { chosenBar } from "./views/chosen";
import { h } from "./views/dom";
import { bar } from "./views/header";
import { teaching } from "./views/learn";
import { parts, views } from "./views";

const app = document.getElementById("app")!;
const raw = await embedded<Report>("hightide-report");
const page = store<Page>({ ...none, dark: darkAtFirst(), cursor: null, shown: {} });
painted(page);
teaching(true);

if (raw) {
  const report = complete(raw);
  document.title = `${report.run.name || report.run.id || "recording"} · hightide`;
  app.append(...views.flatMap((view) => view(report, page) ?? []));
  inHash(page);
  const undo = undoing(page);
  addEventListener("keydown", (e) => { if (e.key === "z" && !e.defaultPrevented && !elsewhere(e)) undo(); });
  const moments = report.allocators?.length && !report.series.some((s) => s.x_unit === "ns") ? "event" : "time";
  app.after(chosenBar(page, () => ({ moments, process: (id) => { const p = report.processes.find((o) => o.id === id); return p ? processName(p, report.processes) : ""; } })));
  app.before(bar(page, parts.filter(([id]) => document.getElementById(id))));
} else {
  app.append(h("p", {}, "This page has no report in it. Make one with: hightide report last --html report.html"));
}
