import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { Report } from "./api";
import { h } from "./lib/dom";
import { views } from "./views";

const app = document.getElementById("app")!;
const report = JSON.parse(document.getElementById("hightide-report")?.textContent ?? "null") as Report | null;

function setTheme(dark: boolean): void {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  window.dispatchEvent(new Event("hightide:theme"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(dark.matches);
dark.addEventListener("change", () => setTheme(dark.matches));
window.addEventListener("hightide:toggle", () => setTheme(document.documentElement.dataset.theme !== "dark"));
window.addEventListener("keydown", (e) => { if (e.key === "t" && !e.ctrlKey && !e.metaKey) window.dispatchEvent(new Event("hightide:toggle")); });
window.addEventListener("beforeprint", () => setTheme(false));

if (report) {
  document.title = `${report.run.name || report.run.id} · hightide`;
  for (const view of views) {
    const element = view(report);
    if (element) app.append(element);
  }
} else {
  app.append(h("p", {}, "This page has no report in it. Make one with: hightide report last --html report.html"));
}
