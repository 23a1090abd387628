// Links to one run for people outside the team: made, listed and ended, where the server has them.

import type { MadeShare, Share, ShareList } from "../../api";
import { copy, h } from "../../views/dom";
import { get, post, remove, status } from "../api";
import { toast } from "./toast";

const day = 24 * 3600,
  lasts = [1, 7, 30, 90];

/** What the address shows, with a secret that lets in whoever has it. */
const addressWith = (secret: string) =>
  `${location.origin}${location.pathname}${location.search}#share=${secret}`;

const told = (e: Error) => toast(e.message, { bad: true });

/** A part of the sheet for a run; it stays empty where who looks makes no links. */
export function outsideLinks(path: string): HTMLElement {
  const place = h("div", { class: "outside-links" }),
    id = /^\/runs\/([^/]+)$/.exec(path)?.[1];
  place.hidden = true;
  if (id)
    void status().then((is) => {
      if (!is.shares) return;
      place.hidden = false;
      fill(place, `/runs/${id}/shares`);
    }, told);
  return place;
}

function fill(place: HTMLElement, at: string): void {
  const list = h("ul", {}),
    choice = h(
      "select",
      { "aria-label": "How long it lasts" },
      ...lasts.map((n) =>
        h(
          "option",
          { value: String(n), ...(n === 7 ? { selected: "" } : {}) },
          `${n} day${n > 1 ? "s" : ""}`,
        ),
      ),
    ),
    make = h("button", { type: "button", class: "button primary" }, "Make a link"),
    made = h("code", { class: "address" });
  made.hidden = true;
  const show = () =>
    void get<ShareList>(at).then(({ shares }) => {
      list.replaceChildren(...shares.filter(isOpen).map((s) => row(s, at, show)));
    }, told);
  make.addEventListener("click", () => {
    void post<MadeShare>(at, { lasts_s: Number(choice.value) * day }).then(async ({ secret }) => {
      made.textContent = addressWith(secret);
      made.hidden = false;
      if (await copy(made.textContent)) toast("The link is copied. It is shown this once.");
      show();
    }, told);
  });
  place.replaceChildren(
    h("h3", {}, "A link for people outside"),
    h(
      "p",
      {},
      "Whoever has it sees this run with its output and files, and no other, until it ends. " +
        "Nothing can be changed by it.",
    ),
    h("p", { class: "outside-make" }, choice, make),
    made,
    list,
  );
  show();
}

const isOpen = (s: Share) => !s.revoked && Date.parse(s.expires) > Date.now();

function row(s: Share, at: string, again: () => void): HTMLElement {
  const end = h("button", { type: "button", class: "plain" }, "End it");
  end.addEventListener("click", () => {
    void remove(`${at}/${s.id}`).then(again, told);
  });
  return h(
    "li",
    {},
    `Link ${s.id} by ${s.by}, until ${new Date(s.expires).toLocaleString()} `,
    end,
  );
}
