// A page for others: a link to what it shows, or a file that needs no server.

import { copy, h } from "../../views/dom";
import { query, saveFile } from "../api";
import type { App } from "../state";
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
    path: /^\/snapshots\/([^/]+)(?:\/whatif)?$/,
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
    at: (_, { search = "", tag = "" }) => query("/trend/page", { search, tag }),
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

/** Opens what a page can be shared as. */
export function share(app: App): void {
  const { path, params } = app.get(),
    file = files.map((f) => ({ ...f, found: f.path.exec(path) })).find((f) => f.found),
    at = file?.at(file.found![1] ?? "", params) ?? "";
  const copy = h("button", { type: "button", class: "button primary" }, "Copy the link"),
    close = h("button", { type: "button", class: "plain" }, "Close");
  const save = h(
    "button",
    { type: "button", class: "button primary", ...(at ? {} : { disabled: "" }) },
    "Save as one HTML file",
  );
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
        h(
          "p",
          {},
          at
            ? "It needs neither the server nor hightide: send it, or attach it to an issue. " +
                "What this page shows is in it, such as names, paths and commands."
            : "This page is a list: open a run, a snapshot, a comparison or a matrix, " +
                "which can be saved.",
        ),
        save,
      ),
      outsideLinks(path),
    ),
  );
  copy.addEventListener("click", () => {
    sheet.close();
    void copyAddress();
  });
  save.addEventListener("click", () => {
    sheet.close();
    void saveFile(at, file!.name).then(
      () => toast(`${file!.name} is saved.`),
      (e: Error) => toast(e.message, { bad: true }),
    );
  });
  close.addEventListener("click", () => sheet.close());
  opened(sheet);
}
