// The sheet of all keys, from the one list of them.

import { h } from "../../views/dom";
import { allKeys } from "./keys";

/** Opens the sheet; Escape or a click beside it closes it. */
export function keySheet(): void {
  if (document.querySelector("dialog.sheet")) return;
  const close = h("button", { type: "button", class: "plain" }, "Close");
  const sheet = h(
    "dialog",
    { class: "sheet", "aria-labelledby": "sheet-title" },
    h("div", { class: "sheet-head" }, h("h2", { id: "sheet-title" }, "Keys"), close),
    h(
      "div",
      { class: "sheet-groups" },
      ...allKeys()
        .filter((g) => g.keys.length > 0)
        .map((g) =>
          h(
            "div",
            {},
            h("h3", {}, g.title),
            h(
              "dl",
              {},
              ...g.keys.map((k) =>
                h(
                  "div",
                  {},
                  h("dt", {}, ...k.keys.flatMap((name, i) => [i > 0 && " or ", keyCap(name)])),
                  h("dd", {}, k.does),
                ),
              ),
            ),
          ),
        ),
    ),
  );
  close.addEventListener("click", () => sheet.close());
  opened(sheet);
}

/** A key as it is printed; parts of a combination apart. */
export const keyCap = (name: string) =>
  h(
    "kbd",
    {},
    name
      .replace("ArrowLeft", "←")
      .replace("ArrowRight", "→")
      .replace("ArrowUp", "↑")
      .replace("ArrowDown", "↓"),
  );

/**
 * Shows a dialog that goes away when it is closed or the page beside it is clicked; the browser
 * gives the focus back to where it was.
 */
export function opened(dialog: HTMLDialogElement): void {
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
