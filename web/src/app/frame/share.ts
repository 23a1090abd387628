// A page for others: a link to what it shows, or a file that needs no server. The API has some
// pages as a file whose charts and tables work; of any other the file has what is shown.

import { copy, h } from "../../views/dom";
import { query, saveFile } from "../api";
import { fileName, save } from "../../draw/save";
import type { App } from "../state";
import { asShown } from "./asshown";
import { outsideLinks } from "./links";
import { opened } from "./sheet";
import { toast } from "./toast";

/** Where the API has a page as one HTML file, and what that is called. Add yours here. */
const files: {
  path: RegExp;
  at: (id: string, params: Readonly<Record<string, string>>) => string;
  name: string;
}[] = [
  { path: /^\/runs\/([^/]+)$/, at: (id) => `/runs/${id}/report.html`, name: "report.html" },
  {
    path: /^\/snapshots\/([^/]+)$/,
    at: (id) => `/snapshots/${id}/report.html`,
    name: "snapshot.html",
  },
  {
    path: /^\/diff$/,
    at: (_, { a, b, by }) =>
      a && b
        ? query("/diff/page", {
            a,
            b,
            by: by && ["site", "module", "category"].includes(by) ? by : "site",
          })
        : "",
    name: "difference.html",
  },
  {
    path: /^\/trend$/,
    at: (_, { search = "", tag = "", of = "" }) => query("/trend/page", { search, tag, of }),
    name: "trend.html",
  },
  { path: /^\/fleet$/, at: () => "/fleet/page", name: "fleet.html" },
  {
    path: /^\/matrices\/([^/]+)$/,
    at: (name) => `/matrices/${name}/report.html`,
    name: "matrix.html",
  },
];

export async function copyAddress(): Promise<void> {
  if (await copy(location.href)) toast("The address of this view is copied.");
  else toast("The browser did not allow it: copy the address from its own bar.", { bad: true });
}

/** Saves what is shown now, named after the page's title. */
function saveShown(): string {
  const title = document.title.replace(/(^| · )hightide$/, ""),
    name = `${fileName(title || "page")}.html`;
  save(new Blob([asShown(document.getElementById("app")!)], { type: "text/html" }), name);
  return name;
}

/** What a button saves, which closes the sheet, and what is said then. */
function saving(title: string, kind: string, sheet: () => void, work: () => Promise<string>) {
  const button = h("button", { type: "button", class: kind }, title);
  button.addEventListener("click", () => {
    sheet();
    void work().then(
      (name) => toast(`${name} is saved.`),
      (e: Error) => toast(e.message, { bad: true }),
    );
  });
  return button;
}

const whole =
  "It needs neither the server nor hightide: send it, or attach it to an issue. " +
  "What this page shows is in it, such as names, paths and commands.";
const still = "It has the page as it is shown now; its buttons and fields do nothing.";

/** Opens what a page can be shared as. */
export function share(app: App): void {
  const { path, params } = app.get(),
    file = files.map((f) => ({ ...f, found: f.path.exec(path) })).find((f) => f.found),
    at = file?.at(file.found![1] ?? "", params) ?? "",
    shut = () => sheet.close();
  const copy = h("button", { type: "button", class: "button primary" }, "Copy the link"),
    close = h("button", { type: "button", class: "plain" }, "Close"),
    shown = () => Promise.resolve().then(saveShown);
  const sheet = h(
    "dialog",
    { class: "sheet share-sheet", "aria-labelledby": "share-title" },
    h("div", { class: "sheet-head" }, h("h2", { id: "share-title" }, "Share this page"), close),
    h(
      "div",
      { class: "share-ways" },
      h(
        "div",
        {},
        h("h3", {}, "A link"),
        h(
          "p",
          {},
          "It opens what is shown here, with what is selected, for whoever the server lets in.",
        ),
        h("code", { class: "address" }, location.href),
        copy,
      ),
      h(
        "div",
        {},
        h("h3", {}, "One file"),
        h("p", {}, at ? whole : `${whole} ${still}`),
        saving("Save as one HTML file", "button primary", shut, () =>
          at ? saveFile(at, file!.name).then(() => file!.name) : shown(),
        ),
        at && h("p", {}, "Or the page with what is selected and unfolded now:"),
        at && saving("Save as it is shown", "button", shut, shown),
      ),
      outsideLinks(path),
    ),
  );
  copy.addEventListener("click", () => {
    shut();
    void copyAddress();
  });
  close.addEventListener("click", shut);
  opened(sheet);
}
