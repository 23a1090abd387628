// The live web UI:  address ──▶ state ──▶ one page ──▶ its panels, which follow the state.
//
// Who opens it is let in first: door.ts. The frame around the page is in frame/: palette, keys,
// messages, the banner of a server that went away.

import "uplot/dist/uPlot.min.css";
import "../style/theme.css";
import "../style/page.css";
import { darkAtFirst, painted } from "../draw/paint";
import { branch, store, type Branch } from "../state/store";
import { chosenBar } from "../views/chosen";
import { contents } from "../views/contents";
import { h } from "../views/dom";
import { differenceParts } from "../views/comparison";
import { explainHere, teaching } from "../views/learn";
import { parts as matrixParts } from "../matrix/page";
import { shortNames } from "../views";
import { announce } from "./frame/announce";
import { awayBanner } from "./frame/away";
import { dropping } from "./frame/drop";
import { always, here, listen } from "./frame/keys";
import { palette, type Command } from "./frame/palette";
import { keySheet } from "./frame/sheet";
import { copyAddress, share } from "./frame/share";
import { undoNewest } from "./frame/toast";
import { bar } from "./bar";
import { enter, leave, shut } from "./door";
import { keepPlace } from "./keepplace";
import { keepScroll } from "./scrolled";
import { appState, fromAddress, go, type State } from "./state";
import { pages } from "./views";
import type { Shown } from "./views/page";
import "./app.css";
import "./frame/frame.css";
import "../style/print.css";

const place = document.getElementById("app")!,
  refused = await enter();
if (refused) {
  painted(store({ dark: darkAtFirst() }));
  place.replaceChildren(shut(refused));
  await new Promise(() => {
    /* nothing else is shown */
  });
}

keepScroll();
const app = appState();
painted(app);
teaching(false);
place.tabIndex = -1;
const onPage = contents(place, new Map([...shortNames, ...differenceParts, ...matrixParts]));
place.before(
  bar(app, { find: () => find(), keys: keySheet, share: () => share(app) }),
  onPage.element,
  awayBanner(),
);

dropping(app, () => shown?.drop);

let shown: Shown | null = null,
  of: Branch<State> | null = null,
  before = { path: "", params: app.get().params };
app.follow(["path", "params"], ({ path, params }) => {
  const page = pages.find((p) => p.path.test(path)),
    first = shown === null;
  const follows = () =>
    typeof page?.follows === "function"
      ? page.follows(before.params, params)
      : page?.follows === true;
  if (!first && path === before.path && (params === before.params || follows())) {
    before = { path, params };
    return;
  }
  const moved = path !== before.path;
  before = { path, params };
  shown?.close?.();
  of?.close();
  of = branch(app);
  document.title = page?.title ? `${page.title} · hightide` : "hightide";
  shown = page ? page.show(of, ...page.path.exec(path)!.slice(1)) : noPage();
  here(shown.keys ?? []);
  const stay = !first && !moved && place.contains(document.activeElement) ? keepPlace(place) : null;
  place.replaceChildren(shown.element);
  stay?.(); // the same page of something else: what had the focus keeps it
  if (stay && !place.contains(document.activeElement)) place.focus({ preventScroll: true });
  if (first || !moved) return;
  // who listens or uses the keyboard begins at the new page's top
  place.focus({ preventScroll: true });
  announce(document.title);
});

place.after(
  chosenBar(app, () => {
    const page = pages.find((p) => p.path.test(app.get().path));
    return page?.selects
      ? {
          moments: shown?.moments?.() ?? page.selects,
          ...(shown?.process ? { process: shown.process } : {}),
        }
      : null;
  }),
);

function noPage(): Shown {
  // declared: the first page is shown above, before a constant down here would be there
  return {
    element: h(
      "section",
      {},
      h("h1", {}, "There is no such page"),
      h("p", {}, h("a", { href: "/" }, "To the runs")),
    ),
  };
}

/** The palette with what there is now: pages, the page's actions, its panels. */
function find(): void {
  const panels = [...place.querySelectorAll<HTMLElement>("section[id] h2")].map(
    (title): Command => ({ title: title.textContent ?? "", kind: "panel", run: () => jump(title) }),
  );
  palette(
    [
      ...(shown?.commands?.() ?? []),
      ...pages
        .filter((p) => p.title)
        .map((p): Command => ({ title: p.title, kind: "page", run: () => go(app, p.at) })),
      ...actions,
      ...panels,
    ],
    (run) => go(app, `/runs/${encodeURIComponent(run.id)}`),
  );
}

/** Closes a dialog that is open. */
function closed(selector: string): boolean {
  const dialog = document.querySelector<HTMLDialogElement>(selector);
  dialog?.close();
  return dialog !== null;
}

function jump(title: HTMLElement): void {
  title.tabIndex = -1;
  title.scrollIntoView({ block: "start" });
  title.focus({ preventScroll: true });
}

const actions: Command[] = [
  {
    title: "Light or dark colours",
    kind: "action",
    key: "t",
    run: () => app.set({ dark: !app.get().dark }),
  },
  { title: "Show all keys", kind: "action", key: "?", run: keySheet },
  { title: "Explain this panel", kind: "action", key: "i", run: explainHere },
  { title: "Share: copy the address of this view", kind: "action", run: () => void copyAddress() },
  { title: "Share: this page as a link or one HTML file", kind: "action", run: () => share(app) },
  { title: "Sign out: end this browser's session", kind: "action", run: () => void leave() },
  { title: "Print this page", kind: "action", key: "Ctrl+P", run: () => print() },
];

always([
  {
    title: "Everywhere",
    keys: [
      {
        keys: ["Ctrl+K"],
        does: "find a page, run, panel or action",
        run: () => {
          if (!closed("dialog.palette")) find();
        },
      },
      { keys: ["?"], does: "show all keys", run: keySheet },
      { keys: ["i"], does: "explain the panel under the pointer", run: explainHere },
      { keys: ["t"], does: "light or dark colours" },
      {
        keys: ["z", "Ctrl+Z"],
        does: "undo what the last message offers, else the last selection",
        run: () => {
          if (!undoNewest()) app.undo();
        },
      },
      {
        keys: ["{", "}"],
        does: "to the section before or after",
        run: (e) => onPage.step(e.key === "}" ? 1 : -1),
      },
      { keys: ["g"], does: "to the list of runs", run: () => go(app, "/") },
      { keys: ["Escape"], does: "close what is open" },
    ],
  },
]);
listen();

// Links within the app change the state and load nothing.
addEventListener("click", (e) => {
  const link = (e.target as Element).closest?.("a[href^='/']");
  if (
    !link ||
    e.defaultPrevented ||
    e.button !== 0 ||
    e.metaKey ||
    e.ctrlKey ||
    e.shiftKey ||
    link.hasAttribute("download") ||
    link.getAttribute("target")
  )
    return;
  const to = new URL((link as HTMLAnchorElement).href);
  e.preventDefault();
  app.set({ ...fromAddress(to.pathname, to.search), cursor: null, shown: {} });
  scrollTo({ top: 0, behavior: "instant" });
});
