// The selection of a page of one file stands behind the # of its address: a link to the file carries it, wherever the file lies.

import { chosen, isOfSelection, read, write, type Selection } from "./selection";
import type { Store } from "./store";

/** The selection that a hash holds; null: it names a part of the page, or nothing. */
export function ofHash(hash: string): Selection | null {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  return hash.includes("=") && [...words.keys()].some(isOfSelection) ? read(words) : null;
}

/** Keeps both in step. A link to a part of the page leads there, and the selection stays. */
export function inHash<S extends Selection>(page: Store<S>): void {
  const put = () => {
    const words = new URLSearchParams();
    write(page.get(), words);
    const text = words.toString(), now = location.hash.replace(/^#/, "");
    if (text !== now && (text || ofHash(location.hash))) history.replaceState(null, "", text ? `#${text}` : location.href.split("#")[0]);
  };
  const take = () => { const held = ofHash(location.hash); if (held) page.set(held as Partial<S>); else put(); };
  take();
  addEventListener("hashchange", take);
  page.follow([...chosen], put);
}
