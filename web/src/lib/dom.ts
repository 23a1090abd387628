type Child = Node | string | null | undefined | false;

/** An element with attributes and children. Texts are texts: nothing from a report is ever markup. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child) element.append(child);
  return element;
}

/** The colours of the page's theme, for canvases. */
export function theme(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** A text whose `quoted` parts are code. */
export function rich(text: string): (Node | string)[] {
  return text.split("`").map((part, i) => i % 2 ? h("code", {}, part) : part);
}
