// What the team's store has of a person: of who looks, or of anybody for an admin of the server. It
// is saved as one file, and deleted once its name was typed.

import type { Person, Status } from "../../../api";
import { count } from "../../../lib/format";
import { h, section } from "../../../views/dom";
import { get, query, remove, status } from "../../api";
import { opened } from "../../frame/sheet";
import { toast } from "../../frame/toast";
import { busy, empty, failure, saver } from "../../parts";
import type { App } from "../../state";
import type { Shown } from "../page";

const at = (name: string) => `/people/${encodeURIComponent(name)}`;

export function personPage(app: App): Shown {
  const asking = new AbortController(),
    body = h("div", {}, busy()),
    title = h("h1", {}, "What is kept of you");
  const ask = () => {
    status()
      .then(async (is) => {
        const name = app.get().params.name ?? is.account ?? "",
          own = name === is.account;
        title.textContent = own ? "What is kept of you" : `What is kept of ${name || "a person"}`;
        const chosen = is.people ? [choice(app, name)] : [];
        if (!name) return body.replaceChildren(...chosen, ...(chosen.length ? [] : [nobody()]));
        const kept = await get<Person>(at(name), asking.signal);
        body.replaceChildren(...chosen, ...parts(kept, is, own, ask));
      })
      .catch((e: unknown) => {
        if (!asking.signal.aborted) body.replaceChildren(failure(e, ask));
      });
  };
  ask();
  return {
    element: h("div", { class: "job-page" }, title, body),
    close: () => asking.abort(),
  };
}

const nobody = () =>
  empty("Nothing is kept of people here", "A server of a team keeps it: hightide serve.");

/** Names another account, for an admin of the server. */
function choice(app: App, name: string): HTMLElement {
  const field = h("input", {
    type: "search",
    placeholder: "Name of an account",
    "aria-label": "Name of an account",
    value: name,
  });
  field.addEventListener("change", () => {
    const to = field.value.trim();
    app.set({ params: to ? { name: to } : {} });
  });
  return h("div", { class: "tools" }, field);
}

/** What there is, in the order in which the command tells it. */
function rows(p: Person): [string, string][] {
  const hidden = p.runs_not_seen
    ? `, and ${count(p.runs_not_seen)} in projects that you do not see`
    : "";
  return [
    ["Account", p.account ? "with a password" : "none with a password"],
    ["Keys", count(p.keys.length)],
    ["Runs", count(p.runs.length) + hidden],
    ["Comments", count(p.comments.length)],
    ["Links", count(p.shares.length)],
    ["Lines of the log", count(p.acts.length)],
    ["Figures of machines", count(p.reserved.length)],
  ];
}

function parts(p: Person, is: Status, own: boolean, again: () => void): HTMLElement[] {
  const erase = h("button", { type: "button", class: "button" }, "Delete it …");
  erase.addEventListener("click", () => confirming(p, own, again));
  return [
    section(
      "kept",
      "What there is",
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          ...rows(p).map(([what, n]) =>
            h("tr", {}, h("th", { scope: "row" }, what), h("td", {}, n)),
          ),
        ),
      ),
      h(
        "p",
        { class: "hint" },
        "Runs are those that keys of the account sent to this server. Names inside recordings of " +
          "others, backups and the team's file are not counted.",
      ),
      ...p.users.map((user) =>
        is.people
          ? h(
              "p",
              {},
              "Perhaps the same person, by comments: ",
              h("a", { href: query("/person", { name: user }) }, user),
            )
          : h("p", {}, `Perhaps the same person, by comments: ${user}. An admin deletes them.`),
      ),
      h(
        "p",
        { class: "tools" },
        saver(
          "Save all of it",
          "A .tar.gz, with the files of the runs",
          () => `${at(p.name)}/export`,
          "person.tar.gz",
        ),
        erase,
      ),
    ),
  ];
}

/** Asks before it deletes: the name has to be typed. */
function confirming(p: Person, own: boolean, again: () => void): void {
  const keep = h("input", { type: "checkbox" }),
    typed = h("input", { type: "text", autocomplete: "off", "aria-label": "The name, to confirm" }),
    does = h("button", { type: "submit", class: "button", disabled: "" }, "Delete for ever"),
    close = h("button", { type: "button", class: "plain" }, "Keep everything"),
    said = h("p", { role: "alert" });
  const form = h(
    "form",
    { class: "signin erase" },
    h(
      "p",
      {},
      `${own ? "Your account, your" : "The account, its"} keys, comments and links end now, ` +
        "and nothing brings them back. Lines of the log and figures of machines stay without the " +
        "name." +
        (own ? " You are signed out." : ""),
    ),
    h("label", { class: "beside" }, keep, " Keep the runs, without the name"),
    h("label", {}, h("span", {}, "Type ", h("b", {}, p.name), " to confirm"), typed),
    does,
    said,
  );
  const sheet = h(
    "dialog",
    { class: "sheet", "aria-labelledby": "erase-title" },
    h("div", { class: "sheet-head" }, h("h2", { id: "erase-title" }, `Delete ${p.name}`), close),
    form,
  );
  typed.addEventListener("input", () => (does.disabled = typed.value !== p.name));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    if (typed.value !== p.name) return;
    does.disabled = true;
    said.textContent = "";
    void remove(query(at(p.name), { keep_runs: keep.checked ? "true" : "" })).then(
      () => {
        sheet.close();
        if (own) return location.assign("/"); // to sign in again, or not
        toast(`Nothing is kept of ${p.name} any more.`);
        again();
      },
      (problem: Error) => {
        does.disabled = false;
        said.textContent = problem.message;
      },
    );
  });
  close.addEventListener("click", () => sheet.close());
  opened(sheet);
}
