// The selection of a page of one file stands behind the # of its address: a link to the file
// carries it, wherever the file lies.

import { chosen, isOfSelection, read, write, type Selection } from "./selection";
import type { Store } from "./store";

/** The selection that a hash holds; null: it names a part of the page, or nothing. */
function ofHash(hash: string): Selection | null {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  return hash.includes("=") && [...words.keys()].some(isOfSelection) ? read(words) : null;
}

/** What a page has chosen besides, as the axis of its curves. */
interface Params {
  params?: Readonly<Record<string, string>>;
}

/**
 * Keeps both in step, with a page's own parameters where it has any. A link to a part of the page
 * leads there, and the selection stays.
 */
export function inHash<S extends Selection>(page: Store<S>): void {
  const put = () => {
    const words = new URLSearchParams();
    write(page.get(), words);
    for (const [key, value] of Object.entries((page.get() as Params).params ?? {}))
      if (value) words.set(key, value);
    const text = words.toString(),
      now = location.hash.replace(/^#/, "");
    if (text !== now && (text || ofHash(location.hash)))
      history.replaceState(null, "", text ? `#${text}` : location.href.split("#")[0]);
  };
  const take = () => {
    const held = ofHash(location.hash);
    if (held)
      page.set({
        ...held,
        ...("params" in page.get()
          ? {
              params: Object.fromEntries(
                [...new URLSearchParams(location.hash.slice(1))].filter(
                  ([key]) => !isOfSelection(key),
                ),
              ),
            }
          : {}),
      } as unknown as Partial<S>);
    else put();
  };
  take();
  addEventListener("hashchange", take);
  page.follow([...chosen, ...("params" in page.get() ? ["params" as keyof S] : [])], put);
}
