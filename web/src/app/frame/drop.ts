// A file that is dropped on a page is opened, but where the page has a use for it.

import { h } from "../../views/dom";
import type { App } from "../state";
import type { Dropping } from "../views/page";
import { go } from "../state";
import { send, type Upload } from "../uploads";
import { toast } from "./toast";

/** Sends files; one alone is shown as soon as it is open, if the reader still waits for it. */
export function openFiles(app: App, files: File[]): void {
  if (files.length === 0) return;
  go(app, "/snapshots");
  const alone = files.length === 1;
  void send(files, (upload: Upload) => {
    if (alone && app.get().path === "/snapshots") go(app, upload.opens);
    else toast(`${upload.name} is open`);
  });
}

/**
 * Takes what is dropped anywhere, and says so while it is dragged over the page. A page may take it
 * in place of this.
 */
export function dropping(app: App, own: () => Dropping | undefined): void {
  const says = h("p", {}),
    veil = h("div", { class: "veil", hidden: "", "aria-hidden": "true" }, says);
  document.body.append(veil);
  const carries = (e: DragEvent) => e.dataTransfer?.types.includes("Files") ?? false;
  let inside = 0; // each element that is crossed is entered and left
  addEventListener("dragenter", (e) => {
    if (carries(e)) {
      e.preventDefault();
      inside++;
      says.textContent = own()?.says ?? "Drop a snapshot or a recording to open it";
      veil.hidden = false;
    }
  });
  addEventListener("dragover", (e) => {
    if (carries(e)) {
      e.preventDefault();
      e.dataTransfer!.dropEffect = "copy";
    }
  });
  addEventListener("dragleave", (e) => {
    if (carries(e) && --inside <= 0) {
      inside = 0;
      veil.hidden = true;
    }
  });
  addEventListener("drop", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    inside = 0;
    veil.hidden = true;
    const files = [...e.dataTransfer!.files],
      taken = own();
    if (taken) taken.files(files);
    else openFiles(app, files);
  });
}
