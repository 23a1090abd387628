// What a picture does at an event of the window, as long as it is on the page.

interface Heard {
  element: { isConnected: boolean };
  then: () => void;
  seen: boolean;
}

const heard = new Map<string, Set<Heard>>();

/**
 * Calls at an event of the window as long as the element is on the page. An element that was on it
 * and is no more is forgotten at the next call, so that a page which is drawn again and again holds
 * nothing of what it replaced.
 */
export function whileShown(
  element: { isConnected: boolean },
  event: string,
  then: () => void,
): void {
  let all = heard.get(event);
  if (!all) {
    heard.set(event, (all = new Set()));
    addEventListener(event, () => tell(all!));
  }
  for (const one of all) {
    if (one.element.isConnected) one.seen = true;
    else if (one.seen) all.delete(one);
  }
  const one: Heard = { element, then, seen: element.isConnected };
  all.add(one);
  if (!one.seen)
    setTimeout(() => {
      one.seen = element.isConnected;
    }); // it is made first, and put on the page right after
}

function tell(all: Set<Heard>): void {
  for (const one of [...all])
    if (one.element.isConnected) one.then();
    else all.delete(one);
}

/** How many wait for an event. */
export const waiting = (event: string): number => heard.get(event)?.size ?? 0;

const coming = new Map<Element, () => void>();
let arrivals: MutationObserver | null = null;

/**
 * Calls once an element is on the page, before anything is painted: an animation frame may come
 * after the first picture of it.
 */
export function onceShown(element: Element, then: () => void): void {
  coming.set(element, then);
  arrivals ??= new MutationObserver(() => {
    for (const [one, call] of [...coming])
      if (one.isConnected) {
        coming.delete(one);
        call();
      }
    if (coming.size === 0) arrivals!.disconnect();
  });
  arrivals.observe(document, { childList: true, subtree: true });
}
