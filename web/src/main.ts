// The page of one report:  JSON in the page ──▶ state ──▶ views, which draw themselves.

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/tracks.css";
import "./style/ranks.css";
import "./style/learn.css";
import "./style/print.css";
import type { Report } from "./api";
import { darkAtFirst, painted } from "./draw/paint";
import { embedded } from "./lib/embedded";
import { complete } from "./state/report";
import { store, type Page } from "./state/store";
import { h } from "./views/dom";
import { bar } from "./views/header";
import { teaching } from "./views/learn";
import { parts, views } from "./views";

const app = document.getElementById("app")!;
const raw = await embedded<Report>("hightide-report");
const page = store<Page>({ dark: darkAtFirst(), process: 0, window: null, cursor: null, at: null, range: null, shown: {} });
painted(page);
teaching(true);

if (raw) {
  const report = complete(raw);
  document.title = `${report.run.name || report.run.id || "recording"} · hightide`;
  app.append(...views.flatMap((view) => view(report, page) ?? []));
  app.before(bar(page, parts.filter(([id]) => document.getElementById(id))));
} else {
  app.append(h("p", {}, "This page has no report in it. Make one with: hightide report last --html report.html"));
}
