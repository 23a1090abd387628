// How this page is let in: #code of the address, or a password where the server knows accounts ──▶
// POST /session ──▶ a cookie, and the page's secret, which every request carries.
//
// The secret is kept for this address and its port alone, and all tabs have it. A cookie goes to
// every port of a machine: without the secret it is worth nothing.

import { sentence } from "../lib/format";
import { h } from "../views/dom";
import type { Status } from "../api";

const kept = "hightide-page",
  header = "X-Hightide-Page";
let here = ""; // where the browser keeps nothing

function secret(): string {
  try {
    return localStorage.getItem(kept) ?? here;
  } catch {
    return here;
  }
}

function keep(page: string): void {
  here = page;
  try {
    localStorage.setItem(kept, page);
  } catch {
    /* this tab alone is let in */
  }
}

export const secrets = (): Record<string, string> => ({ [header]: secret() });

/** A request to the API; the answer is whatever it is. */
export const api = (path: string, asked: RequestInit = {}) =>
  fetch(`/api/v1${path}`, {
    ...asked,
    headers: { ...(asked.headers as Record<string, string> | undefined), ...secrets() },
  });

const code = /^#code=([0-9A-Za-z]+)$/,
  link = /^#share=([0-9A-Za-z]+)$/;

/** Why this browser may not ask, and how people sign in: with a password, at a provider. */
export interface Refused {
  why: string;
  password: boolean;
  provider: boolean;
}

/** Exchanges a code or a password for a session; null: the server does not answer. */
async function session(by: Record<string, string>): Promise<Response | null> {
  const answer = await api("/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(by),
  }).catch(() => null);
  if (answer?.ok) {
    keep(((await answer.json()) as { page: string }).page);
  }
  return answer;
}

/**
 * Takes the code out of the address, and exchanges it. What it gives is why this browser may not
 * ask; null: it may, or the server does not answer.
 */
export async function enter(): Promise<Refused | null> {
  addEventListener("hashchange", () => {
    if (code.test(location.hash) || link.test(location.hash)) location.reload();
  }); // an address opened in this very tab, which loads no page by itself
  const given = code.exec(location.hash)?.[1],
    shared = link.exec(location.hash)?.[1];
  if (shared) return enterByLink(shared);
  let why = "This browser is not let in yet, or the server was started again.";
  if (given) {
    history.replaceState(history.state, "", location.pathname + location.search);
    if ((await session({ code: given }))?.ok) return null;
    why = "This address was opened already, or is older than an hour: it opens once.";
  }
  // an address that is opened again, in the browser that it let in
  const may = await api("/status", { cache: "no-store" }).catch(() => null);
  if (may?.status !== 401) return null;
  const ways = (may.headers.get("X-Hightide-Sign-In") ?? "").split(" ");
  return { why, password: ways.includes("password"), provider: ways.includes("provider") };
}

/** A link to one run, in a browser that the team has not let in. */
async function enterByLink(shared: string): Promise<Refused | null> {
  history.replaceState(history.state, "", location.pathname + location.search);
  const now = await api("/status", { cache: "no-store" }).catch(() => null);
  // who is of the team goes on seeing what the team sees
  if (now?.ok && !((await now.json()) as Status).outside) return null;
  const answer = await session({ share: shared });
  if (answer?.status !== 401) return null;
  return { why: "ended", password: false, provider: false };
}

/** Ends the session of this browser. */
export async function leave(): Promise<void> {
  await api("/session", { method: "DELETE" }).catch(() => null);
  keep("");
  location.reload();
}

/** A form by which a person signs in. */
function signIn(): HTMLElement {
  const name = h("input", {
    name: "name",
    autocomplete: "username",
    required: "",
    maxlength: "100",
  });
  const password = h("input", {
    name: "password",
    type: "password",
    autocomplete: "current-password",
    required: "",
  });
  const said = h("p", { role: "alert" });
  const button = h("button", { type: "submit", class: "button" }, "Sign in");
  const form = h(
    "form",
    { class: "signin" },
    h("label", {}, "Name ", name),
    h("label", {}, "Password ", password),
    button,
    said,
  );
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    button.setAttribute("disabled", "");
    void session({ name: name.value, password: password.value }).then(async (answer) => {
      if (answer?.ok) return location.reload();
      button.removeAttribute("disabled");
      const problem = (await answer?.json().catch(() => null)) as { detail?: string } | null;
      said.textContent = `${sentence(problem?.detail ?? "the server does not answer")}.`;
    });
  });
  return form;
}

/** Leads to the provider of the organization, which sends the browser back with a code. */
const atProvider = (): HTMLElement =>
  h(
    "p",
    {},
    h(
      "a",
      { class: "button", href: "/api/v1/session/provider" },
      "Sign in with your organization's account",
    ),
  );

/** A plain page for who is not let in. It goes on once another tab is. */
export function shut({ why, password, provider }: Refused): HTMLElement {
  addEventListener("storage", (e) => {
    if (e.key === kept) location.reload();
  });
  document.title = "Not let in · hightide";
  if (why === "ended")
    return h(
      "section",
      { class: "refused" },
      h("h1", {}, "This link has ended"),
      h(
        "p",
        {},
        "Links to a run end after a time, or are revoked. Ask who sent it for another one.",
      ),
    );
  if (password || provider) {
    return h(
      "section",
      { class: "refused" },
      h("h1", {}, "Sign in to hightide"),
      ...(provider ? [atProvider()] : []),
      ...(password ? [signIn()] : []),
      h("p", {}, "Who runs this server says what each account may see."),
    );
  }
  return h(
    "section",
    { class: "refused" },
    h("h1", {}, "Open the address that hightide ui prints"),
    h("p", {}, why),
    h(
      "p",
      {},
      "Type ",
      h("code", {}, "hightide ui"),
      " in a terminal of the account that runs the server. " +
        "It prints a new address, also while the server runs. " +
        "That one opens here, once, and then in every tab.",
    ),
  );
}
