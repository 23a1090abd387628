// The page of one report:  JSON in the page ──▶ state ──▶ views, which draw themselves.

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import "./style/print.css";
import type { Report } from "./api";
import { complete } from "./state/report";
import { store, type Page } from "./state/store";
import { h } from "./views/dom";
import { bar } from "./views/header";
import { parts, views } from "./views";

const app = document.getElementById("app")!;
const raw = await embedded(document.getElementById("hightide-report")?.textContent?.trim() ?? "");
const wantsDark = matchMedia("(prefers-color-scheme: dark)");
const page = store<Page>({ dark: wantsDark.matches, process: 0, window: null, cursor: null, shown: {} });

/** The report that the page holds: JSON, compressed with gzip, in base64. */
async function embedded(text: string): Promise<Report | null> {
  if (!text) return null;
  const packed = new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]);
  return (await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json()) as Report;
}

function paint(dark: boolean): void {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  dispatchEvent(new Event("hightide:theme"));
}

page.follow(["dark"], ({ dark }) => paint(dark));
wantsDark.addEventListener("change", () => page.set({ dark: wantsDark.matches }));
addEventListener("keydown", (e) => {
  const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
  if (e.key === "t" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) page.set({ dark: !page.get().dark });
});
addEventListener("beforeprint", () => { // paper is white and cannot be clicked
  document.documentElement.dataset.theme = "light";
  for (const d of document.querySelectorAll("details:not([open])")) { d.setAttribute("open", ""); d.setAttribute("data-closed", ""); }
});
addEventListener("afterprint", () => {
  for (const d of document.querySelectorAll("details[data-closed]")) { d.removeAttribute("open"); d.removeAttribute("data-closed"); }
  paint(page.get().dark);
});

if (raw) {
  const report = complete(raw);
  document.title = `${report.run.name || report.run.id || "recording"} · hightide`;
  app.append(...views.flatMap((view) => view(report, page) ?? []));
  app.before(bar(page, parts.filter(([id]) => document.getElementById(id))));
} else {
  app.append(h("p", {}, "This page has no report in it. Make one with: hightide report last --html report.html"));
}
