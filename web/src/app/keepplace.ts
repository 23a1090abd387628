// Where a reader stands in a part of a page that is made anew: what is in view, and what has the
// focus.

/**
 * Remembers that of a part whose sections have ids; call what it returns once the part has its new
 * children.
 */
export function keepPlace(part: HTMLElement): () => void {
  const seen = [...part.querySelectorAll(":scope > [id]")].find(
      (s) => s.getBoundingClientRect().bottom > covered(),
    ),
    at = seen?.getBoundingClientRect().top ?? 0;
  const height = part.offsetHeight,
    has = document.activeElement,
    focus = has instanceof HTMLElement || has instanceof SVGElement ? has : null;
  const of = focus && part.contains(focus) ? place(focus) : null;
  const sideways = [...part.querySelectorAll<HTMLElement>("[id] *")]
    .filter((e) => e.scrollLeft > 0)
    .map((e) => ({ ...place(e), by: e.scrollLeft }));
  return () => {
    const stay = () => {
      const now = seen && document.getElementById(seen.id);
      if (now) scrollBy({ top: now.getBoundingClientRect().top - at, behavior: "instant" });
    };
    part.style.minHeight = `${height}px`; // charts get their height when they are drawn
    for (const s of sideways) {
      const e = find(part, s);
      if (e) e.scrollLeft = s.by;
    }
    const again = of && find(part, of);
    if (again instanceof HTMLElement || again instanceof SVGElement)
      again.focus({ preventScroll: true });
    stay();
    const y = scrollY;
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        part.style.minHeight = "";
        if (scrollY === y) stay();
      }),
    ); // else the reader has gone on
  };
}

/** What the page's bar covers at the top, in pixels. */
const covered = (): number =>
  parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;

interface Place {
  section: string;
  kind: string;
  said: string;
  index: number;
}

const kindOf = (e: Element) =>
  `${e.tagName}.${[...e.classList].filter((c) => !states.has(c)).join(".")}`;
const states = new Set(["none", "picked"]); // classes that come and go
/** What people call it, without the figures that a label goes on with. */
const saidBy = (e: Element) =>
  (e.getAttribute("aria-label") ?? (e.childElementCount === 0 ? (e.textContent ?? "") : "")).split(
    /[,:]/,
  )[0]!;

function place(e: Element): Place {
  const section = e.closest("[id]")?.id ?? "",
    kind = kindOf(e),
    said = saidBy(e);
  const alike = [...document.querySelectorAll(`#${CSS.escape(section)} *`)].filter(
    (o) => kindOf(o) === kind,
  );
  return { section, kind, said, index: alike.indexOf(e) };
}

/**
 * What stands for it now: of the same kind in the same section, and called the same, else at the
 * same place.
 */
function find(part: HTMLElement, { section, kind, said, index }: Place): Element | undefined {
  const alike = [...part.querySelectorAll(`#${CSS.escape(section)} *`)].filter(
    (o) => kindOf(o) === kind,
  );
  return alike.find((o) => said !== "" && saidBy(o) === said) ?? alike[index];
}
