// Which columns the list has and in which order: the choice behind a button, kept in the address.

import { h } from "../../../views/dom";
import { columnOf, columns, usual } from "../../runlist";

export interface Chooser {
  element: HTMLElement;
  show(chosen: string[], tags: string[]): void;
}

export function columnChooser(choose: (names: string[]) => void): Chooser {
  const list = h("ul"),
    reset = h("button", { type: "button", class: "plain" }, "The usual ones");
  const box = h(
    "details",
    { class: "columns" },
    h("summary", { class: "button" }, "Columns"),
    h("div", { class: "float" }, list, reset),
  );
  let chosen: string[] = [],
    tags: string[] = [];
  const fill = () => {
    const others = [
      ...Object.keys(columns).filter((n) => n !== "name"),
      ...tags.map((t) => `tag.${t}`),
    ].filter((n) => !chosen.includes(n));
    list.replaceChildren(...[...chosen, ...others].map((name) => rowOf(name, chosen, choose)));
  };
  reset.addEventListener("click", () => choose(usual));
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && box.open) {
      e.stopPropagation();
      box.open = false;
      box.querySelector("summary")!.focus();
    }
  });
  box.addEventListener("focusout", (e) => {
    if (e.relatedTarget instanceof Node && !box.contains(e.relatedTarget)) box.open = false;
  });
  return {
    element: box,
    show(names, known) {
      [chosen, tags] = [names, known];
      const at =
          document.activeElement instanceof HTMLElement && list.contains(document.activeElement)
            ? document.activeElement
            : null,
        of = at?.closest<HTMLElement>("li")?.dataset.column,
        label = at?.getAttribute("aria-label");
      fill();
      const row = of && [...list.children].find((li) => (li as HTMLElement).dataset.column === of);
      if (row)
        (
          [...row.querySelectorAll<HTMLElement>("button:not(:disabled)")].find(
            (b) => b.getAttribute("aria-label") === label,
          ) ?? row.querySelector("input")
        )?.focus();
    },
  };
}

/** The row of a column: whether the list has it and, if it does, what moves it. */
function rowOf(name: string, chosen: string[], choose: (names: string[]) => void): HTMLElement {
  const place = chosen.indexOf(name),
    on = place >= 0,
    tick = h("input", { type: "checkbox" });
  tick.checked = on;
  tick.addEventListener("change", () =>
    choose(tick.checked ? [...chosen, name] : chosen.filter((n) => n !== name)),
  );
  const title = `${columnOf(name)!.title}${name.startsWith("tag.") ? " (tag)" : ""}`;
  const move = (step: number, sign: string) => {
    const button = h(
      "button",
      {
        type: "button",
        class: "plain",
        "aria-label": `Move ${title} ${step < 0 ? "to the left" : "to the right"}`,
        ...(on && place + step >= 0 && place + step < chosen.length ? {} : { disabled: "" }),
      },
      sign,
    );
    button.addEventListener("click", () => {
      const next = chosen.filter((n) => n !== name);
      next.splice(place + step, 0, name);
      choose(next);
    });
    return button;
  };
  return h(
    "li",
    { "data-column": name },
    h("label", { class: "check" }, tick, ` ${title}`),
    on && h("span", {}, move(-1, "↑"), move(1, "↓")),
  );
}
