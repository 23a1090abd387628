// What a picture does at an event of the window, as long as it is on the page.

interface Heard { element: { isConnected: boolean }; then: () => void; seen: boolean }

const heard = new Map<string, Set<Heard>>();

/**
 * Calls at an event of the window as long as the element is on the page. An element that was on it and is no more is forgotten at the
 * next call, so that a page which is drawn again and again holds nothing of what it replaced.
 */
export function whileShown(element: { isConnected: boolean }, event: string, then: () => void): void {
  let all = heard.get(event);
  if (!all) {
    heard.set(event, all = new Set());
    addEventListener(event, () => tell(all!));
  }
  for (const one of all) {
    if (one.element.isConnected) one.seen = true;
    else if (one.seen) all.delete(one);
  }
  const one: Heard = { element, then, seen: element.isConnected };
  all.add(one);
  if (!one.seen) setTimeout(() => { one.seen = element.isConnected; }); // it is made first, and put on the page right after
}

function tell(all: Set<Heard>): void {
  for (const one of [...all]) if (one.element.isConnected) one.then(); else all.delete(one);
}

/** How many wait for an event. */
export const waiting = (event: string): number => heard.get(event)?.size ?? 0;
