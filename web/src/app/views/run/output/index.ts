// What the program wrote to its terminal, with its colours, as it writes it.

import type { Report } from "../../../../api";
import { whileShown } from "../../../../draw/shown";
import { bytes, commandLine, count } from "../../../../lib/format";
import { copier, copy, h, section } from "../../../../views/dom";
import { Problem } from "../../../api";
import { toast } from "../../../frame/toast";
import { failure, givenUp, saver } from "../../../parts";
import type { KeyGroup } from "../../../frame/keys";
import type { Command } from "../../../frame/palette";
import type { App } from "../../../state";
import type { Feed } from "../feed";
import type { Part, PartOf } from "../part";
import { rowView, type RowView } from "./rows";
import { outputOf, type Output } from "./source";
import "./output.css";

const mostCopied = 20_000,
  mostFound = 100_000,
  missingTries = 8,
  missingMs = 1000;

/**
 * The address holds the rows that are picked (row=120-140), what is searched for (find=) and
 * whether long rows are wrapped (wrap=1).
 */
interface Asked {
  picked: [number, number] | null;
  words: string;
  wraps: boolean;
}

function asked({ params }: { params: Readonly<Record<string, string>> }): Asked {
  const [from, to = from] = (params.row ?? "").split("-").map((n) => Number(n) - 1);
  return {
    picked: from !== undefined && to !== undefined && from >= 0 && to >= from ? [from, to] : null,
    words: (params.find ?? "").toLowerCase(),
    wraps: params.wrap === "1",
  };
}

const keys: KeyGroup[] = [
  {
    title: "Terminal output, with the focus in it",
    keys: [
      {
        keys: ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home"],
        does: "move through the rows",
      },
      { keys: ["End"], does: "go to the end and follow it" },
      { keys: ["/"], does: "search" },
      { keys: ["n", "N"], does: "the next match, the one before" },
      { keys: ["w"], does: "wrap long rows" },
    ],
  },
];

const button = (
  text: string,
  title: string,
  then: () => void,
  more: Record<string, string> = {},
): HTMLButtonElement => {
  const b = h("button", { type: "button", class: "button", title, ...more }, text);
  b.addEventListener("click", then);
  return b;
};

/** How much there is, and what of it is picked. */
function rowsText(from: Output, picked: [number, number] | null): string {
  const counting = from.seen < from.size;
  return [
    `${count(from.rows)} row${from.rows === 1 ? "" : "s"}`,
    bytes(from.size),
    counting && `rows of the first ${bytes(from.seen)} are counted so far`,
    picked &&
      (picked[0] === picked[1]
        ? `row ${count(picked[0] + 1)} is picked`
        : `rows ${count(picked[0] + 1)} to ${count(picked[1] + 1)} are picked`),
  ]
    .filter(Boolean)
    .join(" · ");
}

export const output: PartOf = (feed: Feed, app: App): Part => {
  const shown = new Terminal(feed, app);
  return {
    element: shown.place,
    close: () => shown.close(),
    keys,
    commands: () => shown.commands(),
  };
};

class Terminal {
  readonly place = h("div", { class: "panel" });
  private readonly told = h("p", { class: "reading", role: "status" });
  private readonly problem = h("div");
  private readonly field = h("input", {
    type: "search",
    placeholder: "Search the output",
    "aria-label": "Search the output",
  });
  private readonly hits = h("span", { class: "hits", role: "status" });
  private readonly previous = button("↑", "Previous (N)", () => this.step(-1), {
    "aria-label": "Previous match",
  });
  private readonly next = button("↓", "Next (n)", () => this.step(1), {
    "aria-label": "Next match",
  });
  private readonly wrap = button(
    "Wrap",
    "Wrap long rows (w)",
    () => this.tell("wrap", this.app.get().params.wrap === "1" ? "" : "1"),
    { "aria-pressed": "false" },
  );
  private readonly end = button("Follow the end", "Go to the end and stay there (End)", () =>
    this.view.end(),
  );
  private readonly copied = button(
    "Copy",
    "Copy the rows that are picked, else all",
    () => void this.copyRows(),
  );
  private readonly panel: HTMLElement;
  private readonly from: Output;
  private readonly view: RowView;
  private readonly feed: Feed;
  private readonly app: App;

  private found: number[] = [];
  private now = -1; // the match that is looked at; -1: none
  private share = 1; // of the output that was searched
  private searching: AbortController | null = null;
  private wanted = false;
  private lacks = false;
  private tries = 0;
  private timer = 0;
  private typing = 0;
  private report: Report | null = null;
  private follow = () => {};

  constructor(feed: Feed, app: App) {
    [this.feed, this.app] = [feed, app];
    this.from = outputOf(
      feed.path,
      feed.closed,
      () => {
        this.view.draw();
        this.say();
      },
      (e) =>
        this.problem.replaceChildren(
          failure(e, () => {
            this.problem.replaceChildren();
            void this.refresh();
          }),
        ),
    );
    this.view = rowView(
      {
        rows: () => this.from.rows,
        row: (n) => this.from.row(n),
        picked: () => asked(app.get()).picked,
        words: () => asked(app.get()).words,
        now: () => this.now,
      },
      {
        pick: (row, more) => this.pick(row, more),
        moved: () => {
          this.end.hidden = this.view.following();
        },
      },
    );
    this.panel = section(
      "output",
      "Terminal output",
      this.tools(),
      this.problem,
      this.view.element,
      this.told,
    );
    this.field.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.tell("find", this.field.value.trim()), 200);
    });
    this.field.addEventListener("keydown", (e) => this.fieldKey(e));
    this.view.element.addEventListener("keydown", (e) => this.key(e));
    whileShown(this.view.element, "hightide:theme", this.view.draw);
    this.listen();
  }

  private listen(): void {
    const { feed } = this;
    feed.report((r) => {
      this.report = r;
      if (this.lacks) this.missing();
    });
    feed.begin((live) => {
      this.wanted = true;
      void this.refresh(live).then(() => {
        if (!live) this.view.settle();
      });
    });
    feed.on("output", (part) => {
      if (this.wanted) this.from.told(part);
      if (!this.panel.isConnected) void this.refresh(true);
    });
    feed.on("end", () => void this.refresh());
  }

  close(): void {
    this.follow();
    this.searching?.abort();
    clearTimeout(this.timer);
    clearTimeout(this.typing);
    removeEventListener("hightide:theme", this.view.draw);
  }

  commands(): Command[] {
    if (!this.panel.isConnected) return [];
    const search = () => {
      this.panel.scrollIntoView({ block: "start" });
      this.field.focus();
    };
    return [
      { title: "Search the terminal output", kind: "action", run: search },
      {
        title: "Wrap long rows of the output",
        kind: "action",
        key: "w",
        run: () => this.wrap.click(),
      },
    ];
  }

  private tools(): HTMLElement {
    const download = saver(
      "Download",
      "Every byte as the program wrote it",
      () => `${this.feed.path}/artifacts/output.log`,
      `${this.feed.id}.log`,
    );
    return h(
      "div",
      { class: "tools" },
      ...[this.field, this.previous, this.next, this.hits, h("span", { class: "gap" })],
      ...[this.end, this.wrap, this.copied, download],
    );
  }

  private tell(key: "row" | "find" | "wrap", value: string) {
    const { [key]: _, ...rest } = this.app.get().params;
    this.app.set({ params: value ? { ...rest, [key]: value } : rest });
  }

  /** Picks a row, with more all up to it; the one that is picked alone is picked no more. */
  private pick(row: number, more: boolean): void {
    const before = asked(this.app.get()).picked,
      [a, b] = more && before ? [Math.min(row, before[0]), Math.max(row, before[1])] : [row, row];
    this.tell(
      "row",
      !more && before && before[0] === row && before[1] === row
        ? ""
        : a === b
          ? String(a + 1)
          : `${a + 1}-${b + 1}`,
    );
  }

  private say(): void {
    const { picked, words } = asked(this.app.get());
    this.told.textContent = rowsText(this.from, picked);
    this.hits.textContent = words ? this.hitsText() : "";
    this.previous.disabled = this.next.disabled = this.found.length === 0;
    this.previous.hidden = this.next.hidden = this.hits.hidden = !words;
  }

  private hitsText(): string {
    const { found, now, share } = this,
      chosen = now >= 0 ? `${count(found.indexOf(now) + 1)} of ` : "",
      more = found.length >= mostFound ? " or more" : "";
    if (share < 1) return `${count(found.length)}, ${Math.floor(share * 100)} % searched`;
    return found.length === 0 ? "nothing found" : chosen + count(found.length) + more;
  }

  private step(by: 1 | -1) {
    if (this.found.length === 0) return;
    const here = this.now >= 0 ? this.now : this.view.first(),
      i =
        by > 0
          ? this.found.findIndex((n) => n > here || (this.now < 0 && n === here))
          : this.found.findLastIndex((n) => n < here);
    this.now = this.found[i < 0 ? (by > 0 ? 0 : this.found.length - 1) : i]!;
    this.view.goTo(this.now);
    this.say();
  }

  private async search() {
    this.searching?.abort();
    const { words } = asked(this.app.get()),
      mine = (this.searching = new AbortController()),
      stop = AbortSignal.any([mine.signal, this.feed.closed]);
    [this.found, this.now, this.share] = [[], -1, words ? 0 : 1];
    this.view.draw();
    this.say();
    if (!words) return;
    try {
      await this.from.find(words, this.view.first(), stop, (rows, done) => {
        this.found = [...new Set([...this.found, ...rows])]
          .sort((a, b) => a - b)
          .slice(0, mostFound);
        this.share = done;
        if (this.now < 0) this.step(1);
        this.say();
      });
    } catch (e) {
      if (!givenUp(e) && !stop.aborted) this.problem.replaceChildren(failure(e));
    }
  }

  private async copyRows() {
    const { picked } = asked(this.app.get()),
      [a, b] = picked ?? [0, this.from.rows - 1],
      first = Math.max(a, b + 1 - mostCopied);
    try {
      const done = await copy((await this.from.read(first, b + 1)).map((r) => r.text).join("\n"));
      if (!done) toast("The browser did not allow it: select the text and copy it.", { bad: true });
      else if (first > a)
        toast(`The last ${count(mostCopied)} rows are copied; the download has all.`);
      else toast(`${count(b + 1 - first)} rows are copied.`);
    } catch (e) {
      if (!givenUp(e)) toast("The rows could not be read.", { bad: true });
    }
  }

  private fieldKey(e: KeyboardEvent): void {
    if (e.key === "Enter") {
      e.preventDefault();
      this.step(e.shiftKey ? -1 : 1);
    }
    if (e.key === "Escape") {
      e.stopPropagation();
      this.field.value = "";
      this.tell("find", "");
      this.view.element.focus();
    }
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== this.view.element) return;
    const does: Record<string, () => void> = {
      ArrowUp: () => this.view.by(-1),
      ArrowDown: () => this.view.by(1),
      PageUp: () => this.view.by(-this.view.page()),
      PageDown: () => this.view.by(this.view.page()),
      Home: () => this.view.goTo(0),
      End: () => this.view.end(),
      n: () => this.step(1),
      N: () => this.step(-1),
      w: () => this.wrap.click(),
      "/": () => this.field.focus(),
    };
    const then = does[e.key];
    if (!then) return;
    e.preventDefault();
    e.stopPropagation();
    then();
  }

  /** The first that there is to show. */
  private open() {
    if (this.panel.isConnected) return;
    this.place.replaceChildren(this.panel);
    const { picked, words, wraps } = asked(this.app.get());
    this.field.value = words;
    this.view.wrap(wraps);
    if (picked) this.view.goTo(picked[0]);
    if (words) void this.search();
    let before = asked(this.app.get());
    this.follow = this.app.follow(["params"], (state) => {
      const fresh = asked(state);
      if (fresh.words !== before.words) {
        if (document.activeElement !== this.field) this.field.value = state.params.find ?? "";
        before = fresh;
        void this.search();
      }
      if (fresh.wraps !== before.wraps) this.view.wrap(fresh.wraps);
      this.wrap.setAttribute("aria-pressed", String(fresh.wraps));
      before = fresh;
      this.view.draw();
      this.say();
    });
  }

  private missing() {
    if (this.panel.isConnected) return;
    this.lacks = true;
    const command = commandLine(this.report?.run.command ?? []) || "python train.py",
      line = `hightide run --capture -- ${command}`;
    this.place.replaceChildren(
      section(
        "output",
        "Terminal output",
        h(
          "p",
          { class: "hint" },
          "What this run wrote to its terminal was not kept. " +
            "It is kept, colours and all, where the run begins with:",
        ),
        copier(line, { class: "command" }, h("code", {}, line)),
      ),
    );
  }

  private async refresh(live = false): Promise<void> {
    try {
      await this.from.refresh();
      this.open();
      this.view.draw();
      this.say();
    } catch (e) {
      if (givenUp(e) || this.feed.closed.aborted) return;
      if (!(e instanceof Problem) || e.status !== 404) {
        this.problem.replaceChildren(failure(e, () => void this.refresh(live)));
        return;
      }
      if (live && ++this.tries < missingTries)
        // the file may come a moment after the recording
        this.timer = window.setTimeout(() => void this.refresh(true), missingMs);
      else this.missing();
    }
  }
}
