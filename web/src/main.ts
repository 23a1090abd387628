// The page of one report:  JSON in the page ──▶ state ──▶ views, which draw themselves.

import "uplot/dist/uPlot.min.css";
import "./style/theme.css";
import "./style/page.css";
import type { Report } from "./api";
import { darkAtFirst, elsewhere, painted } from "./draw/paint";
import type { Courses } from "./lib/bothcourses";
import { embedded } from "./lib/embedded";
import { savedPage, type Saved } from "./savedpage";
import { inHash } from "./state/hash";
import { complete, processName } from "./state/report";
import { none, undoing } from "./state/selection";
import type { Page } from "./state/page";
import { branch, store } from "./state/store";
import { chosenBar, type Units } from "./views/chosen";
import {
  alongOf,
  comparison,
  differenceParts,
  momentsOf,
  nameOf,
  type Compared,
} from "./views/comparison";
import { h } from "./views/dom";
import { bar } from "./views/header";
import { contents } from "./views/contents";
import { teaching } from "./views/learn";
import { shortNames, views } from "./views";
import "./style/print.css";

const app = document.getElementById("app")!;
const raw = await embedded<Report | { compared: Compared } | Saved>("hightide-report");
const page = store<Page & { params: Readonly<Record<string, string>> }>({
  ...none,
  dark: darkAtFirst(),
  cursor: null,
  shown: {},
  params: {},
});
painted(page);
teaching(true);

/** Undo by key, and what is selected. */
function frame(units: () => Units): void {
  inHash(page);
  const undo = undoing(page);
  addEventListener("keydown", (e) => {
    if (e.key === "z" && !e.defaultPrevented && !elsewhere(e)) undo();
  });
  app.after(chosenBar(page, units));
}

/** The bar with the contents of the page. */
function withContents(names: ReadonlyMap<string, string>): void {
  const of = contents(app, names),
    top = bar(page, []);
  top.querySelector("nav")!.replaceWith(of.element);
  addEventListener("keydown", (e) => {
    if ((e.key === "{" || e.key === "}") && !e.defaultPrevented && !elsewhere(e))
      of.step(e.key === "}" ? 1 : -1);
  });
  app.before(top);
}

/** Two beside each other. */
function compared({
  before,
  after,
  told,
  device,
  by: deviceBy = "site",
  why_not: whyNot = "",
}: Compared): void {
  const along = alongOf(page),
    [p, q] = [complete(before), complete(after)],
    place = h("div", { class: "job-page" });
  let over: Courses[] = [],
    of = branch(page),
    axis = branch(along);
  const show = (by: string) => {
    of.close();
    axis.close();
    [of, axis] = [branch(page), branch(along)];
    const made = comparison(
      {
        before: p,
        after: q,
        told: told ? complete(told) : null,
        device: device && complete(device),
        whyNot,
        deviceBy,
        by,
        choose: show,
        along: axis,
        facts: () => [],
      },
      of,
    );
    over = made.over;
    place.replaceChildren(made.answer, ...made.parts);
  };
  document.title = `${nameOf(p, q)} · hightide`;
  app.append(place);
  show("");
  frame(() => ({ moments: momentsOf(over, along.get().along) }));
  along.follow(["along"], () => {
    dispatchEvent(new Event("hightide:named"));
  });
  withContents(new Map(differenceParts));
}

if (raw && "compared" in raw) compared(raw.compared);
else if (raw && "made_wall_ns" in raw) {
  const saved = savedPage(raw);
  document.title = `${saved.title} · hightide`;
  app.append(saved.element);
  withContents(saved.names);
} else if (raw) {
  const report = complete(raw);
  document.title = `${report.run.name || report.run.id || "recording"} · hightide`;
  app.append(...views.flatMap((view) => view(report, page) ?? []));
  const moments =
    report.allocators?.length && !report.series.some((s) => s.x_unit === "ns") ? "event" : "time";
  frame(() => ({
    moments,
    process: (id) => {
      const p = report.processes.find((o) => o.id === id);
      return p ? processName(p, report.processes) : "";
    },
  }));
  withContents(shortNames);
} else {
  app.append(
    h(
      "p",
      {},
      "This page has no report in it. Make one with: hightide report last --html report.html",
    ),
  );
}
