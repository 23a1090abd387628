// What the program wrote to its terminal, with its colours, as it writes it.

import type { Report } from "../../../../api";
import { whileShown } from "../../../../draw/shown";
import { bytes, commandLine, count } from "../../../../lib/format";
import { copier, copy, h, section } from "../../../../views/dom";
import { Problem } from "../../../api";
import { toast } from "../../../frame/toast";
import { failure, givenUp, saver } from "../../../parts";
import type { App } from "../../../state";
import type { Feed } from "../feed";
import type { Part, PartOf } from "../part";
import { rowView } from "./rows";
import { outputOf } from "./source";
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

export const output: PartOf = (feed: Feed, app: App): Part => {
  const place = h("div", { class: "panel" });
  const tell = (key: "row" | "find" | "wrap", value: string) => {
    const { [key]: _, ...rest } = app.get().params;
    app.set({ params: value ? { ...rest, [key]: value } : rest });
  };
  const told = h("p", { class: "reading", role: "status" }),
    problem = h("div");
  const from = outputOf(
    feed.path,
    feed.closed,
    () => {
      view.draw();
      say();
    },
    (e) =>
      problem.replaceChildren(
        failure(e, () => {
          problem.replaceChildren();
          void refresh();
        }),
      ),
  );
  let found: number[] = [],
    now = -1,
    share = 1,
    searching: AbortController | null = null,
    wanted = false;

  const view = rowView(
    {
      rows: () => from.rows,
      row: from.row,
      picked: () => asked(app.get()).picked,
      words: () => asked(app.get()).words,
      now: () => now,
    },
    {
      pick(row, more) {
        const before = asked(app.get()).picked,
          [a, b] =
            more && before ? [Math.min(row, before[0]), Math.max(row, before[1])] : [row, row];
        tell(
          "row",
          !more && before && before[0] === row && before[1] === row
            ? ""
            : a === b
              ? String(a + 1)
              : `${a + 1}-${b + 1}`,
        );
      },
      moved() {
        end.hidden = view.following();
      },
    },
  );

  const field = h("input", {
      type: "search",
      placeholder: "Search the output",
      "aria-label": "Search the output",
    }),
    hits = h("span", { class: "hits", role: "status" });
  const button = (
    text: string,
    title: string,
    then: () => void,
    more: Record<string, string> = {},
  ) => {
    const b = h("button", { type: "button", class: "button", title, ...more }, text);
    b.addEventListener("click", then);
    return b;
  };
  const previous = button("↑", "Previous (N)", () => step(-1), { "aria-label": "Previous match" }),
    next = button("↓", "Next (n)", () => step(1), { "aria-label": "Next match" });
  const wrap = button(
    "Wrap",
    "Wrap long rows (w)",
    () => tell("wrap", app.get().params.wrap === "1" ? "" : "1"),
    { "aria-pressed": "false" },
  );
  const end = button("Follow the end", "Go to the end and stay there (End)", () => view.end());
  const copied = button("Copy", "Copy the rows that are picked, else all", () => void copyRows());
  const download = saver(
    "Download",
    "Every byte as the program wrote it",
    () => `${feed.path}/artifacts/output.log`,
    `${feed.id}.log`,
  );
  const tools = h(
    "div",
    { class: "tools" },
    field,
    previous,
    next,
    hits,
    h("span", { class: "gap" }),
    end,
    wrap,
    copied,
    download,
  );

  const say = () => {
    const { picked } = asked(app.get()),
      counting = from.seen < from.size;
    told.textContent = [
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
    const { words } = asked(app.get());
    const chosen = now >= 0 ? `${count(found.indexOf(now) + 1)} of ` : "",
      more = found.length >= mostFound ? " or more" : "";
    hits.textContent = !words
      ? ""
      : share < 1
        ? `${count(found.length)}, ${Math.floor(share * 100)} % searched`
        : found.length === 0
          ? "nothing found"
          : chosen + count(found.length) + more;
    previous.disabled = next.disabled = found.length === 0;
    previous.hidden = next.hidden = hits.hidden = !words;
  };
  const step = (by: 1 | -1) => {
    if (found.length === 0) return;
    const here = now >= 0 ? now : view.first(),
      i =
        by > 0
          ? found.findIndex((n) => n > here || (now < 0 && n === here))
          : found.findLastIndex((n) => n < here);
    now = found[i < 0 ? (by > 0 ? 0 : found.length - 1) : i]!;
    view.goTo(now);
    say();
  };
  const search = async () => {
    searching?.abort();
    const { words } = asked(app.get()),
      mine = (searching = new AbortController()),
      stop = AbortSignal.any([mine.signal, feed.closed]);
    [found, now, share] = [[], -1, words ? 0 : 1];
    view.draw();
    say();
    if (!words) return;
    try {
      await from.find(words, view.first(), stop, (rows, done) => {
        found = [...new Set([...found, ...rows])].sort((a, b) => a - b).slice(0, mostFound);
        share = done;
        if (now < 0) step(1);
        say();
      });
    } catch (e) {
      if (!givenUp(e) && !stop.aborted) problem.replaceChildren(failure(e));
    }
  };
  const copyRows = async () => {
    const { picked } = asked(app.get()),
      [a, b] = picked ?? [0, from.rows - 1],
      first = Math.max(a, b + 1 - mostCopied);
    try {
      const done = await copy((await from.read(first, b + 1)).map((r) => r.text).join("\n"));
      if (!done) toast("The browser did not allow it: select the text and copy it.", { bad: true });
      else if (first > a)
        toast(`The last ${count(mostCopied)} rows are copied; the download has all.`);
      else toast(`${count(b + 1 - first)} rows are copied.`);
    } catch (e) {
      if (!givenUp(e)) toast("The rows could not be read.", { bad: true });
    }
  };
  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => tell("find", field.value.trim()), 200);
  });
  field.addEventListener("keydown", (e) => {
    if (e.key === "Enter") {
      e.preventDefault();
      step(e.shiftKey ? -1 : 1);
    }
    if (e.key === "Escape") {
      e.stopPropagation();
      field.value = "";
      tell("find", "");
      view.element.focus();
    }
  });
  view.element.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== view.element) return;
    const does: Record<string, () => void> = {
      ArrowUp: () => view.by(-1),
      ArrowDown: () => view.by(1),
      PageUp: () => view.by(-view.page()),
      PageDown: () => view.by(view.page()),
      Home: () => view.goTo(0),
      End: view.end,
      n: () => step(1),
      N: () => step(-1),
      w: () => wrap.click(),
      "/": () => field.focus(),
    };
    const then = does[e.key];
    if (!then) return;
    e.preventDefault();
    e.stopPropagation();
    then();
  });
  whileShown(view.element, "hightide:theme", view.draw);

  const panel = section("output", "Terminal output", tools, problem, view.element, told);
  /** The first that there is to show. */
  const open = () => {
    if (panel.isConnected) return;
    place.replaceChildren(panel);
    const { picked, words, wraps } = asked(app.get());
    field.value = words;
    view.wrap(wraps);
    if (picked) view.goTo(picked[0]);
    if (words) void search();
    let before = asked(app.get());
    follow = app.follow(["params"], (state) => {
      const fresh = asked(state);
      if (fresh.words !== before.words) {
        if (document.activeElement !== field) field.value = state.params.find ?? "";
        before = fresh;
        void search();
      }
      if (fresh.wraps !== before.wraps) view.wrap(fresh.wraps);
      wrap.setAttribute("aria-pressed", String(fresh.wraps));
      before = fresh;
      view.draw();
      say();
    });
  };
  let follow = () => {},
    lacks = false,
    tries = 0,
    timer = 0,
    report: Report | null = null;
  const missing = () => {
    if (panel.isConnected) return;
    lacks = true;
    const command = commandLine(report?.run.command ?? []) || "python train.py",
      line = `hightide run --capture -- ${command}`;
    place.replaceChildren(
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
  };
  const refresh = async (live = false): Promise<void> => {
    try {
      await from.refresh();
      open();
      view.draw();
      say();
    } catch (e) {
      if (givenUp(e) || feed.closed.aborted) return;
      if (!(e instanceof Problem) || e.status !== 404) {
        problem.replaceChildren(failure(e, () => void refresh(live)));
        return;
      }
      if (live && ++tries < missingTries)
        // the file may come a moment after the recording
        timer = window.setTimeout(() => void refresh(true), missingMs);
      else missing();
    }
  };
  feed.report((r) => {
    report = r;
    if (lacks) missing();
  });
  feed.begin((live) => {
    wanted = true;
    void refresh(live).then(() => {
      if (!live) view.settle();
    });
  });
  feed.on("output", (part) => {
    if (wanted) from.told(part);
    if (!panel.isConnected) void refresh(true);
  });
  feed.on("end", () => void refresh());
  return {
    element: place,
    close: () => {
      follow();
      searching?.abort();
      clearTimeout(timer);
      clearTimeout(typing);
      removeEventListener("hightide:theme", view.draw);
    },
    keys: [
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
    ],
    commands: () =>
      panel.isConnected
        ? [
            {
              title: "Search the terminal output",
              kind: "action",
              run: () => {
                panel.scrollIntoView({ block: "start" });
                field.focus();
              },
            },
            {
              title: "Wrap long rows of the output",
              kind: "action",
              key: "w",
              run: () => wrap.click(),
            },
          ]
        : [],
  };
};
