// The one list of keys: what the page and the frame do with them, and what the sheet that ? opens
// shows.

/**
 * A key as the sheet shows it ("Ctrl+K", "?", "j") and what it does; run is absent where an element
 * takes it by itself.
 */
export interface Key {
  keys: string[];
  does: string;
  run?: (event: KeyboardEvent) => void;
}
export interface KeyGroup {
  title: string;
  keys: Key[];
}

let groups: KeyGroup[] = [];
let common: KeyGroup[] = [];

/** The keys of the frame, which hold on every page. */
export const always = (all: KeyGroup[]): void => {
  common = all;
};

/** The keys of the page that is shown; they go before those of the frame. */
export const here = (all: KeyGroup[]): void => {
  groups = all;
};

export const allKeys = (): KeyGroup[] => [...groups, ...common];

/** A key press as the list writes it. */
function nameOf(e: KeyboardEvent): string {
  const key =
    e.key === " "
      ? "Space"
      : e.key.length === 1 && (e.ctrlKey || e.metaKey)
        ? e.key.toUpperCase()
        : e.key;
  const ctrl = e.ctrlKey || e.metaKey ? "Ctrl+" : "",
    alt = e.altKey ? "Alt+" : "",
    shift = e.shiftKey && e.key.length > 1 ? "Shift+" : "";
  return ctrl + alt + shift + key;
}

/** Whether a press belongs to a field: texts, and its own undo. Escape and Ctrl+K never do. */
const typed = (e: KeyboardEvent) => {
  const at = e.target instanceof Element ? e.target : null;
  return (
    at !== null &&
    at.matches(
      "input:not([type=checkbox]):not([type=range]), select, textarea, [contenteditable]",
    ) &&
    !["Escape", "Ctrl+K"].includes(nameOf(e))
  );
};

/**
 * Hands presses to the first key of the list that has something to do. An open dialog has its own.
 */
export function listen(): void {
  addEventListener("keydown", (e) => {
    if (
      e.defaultPrevented ||
      e.altKey ||
      typed(e) ||
      (document.querySelector("dialog[open]") && nameOf(e) !== "Ctrl+K")
    )
      return;
    const name = nameOf(e),
      key = allKeys()
        .flatMap((g) => g.keys)
        .find((k) => k.run && k.keys.includes(name));
    if (!key) return;
    e.preventDefault();
    key.run!(e);
  });
}
