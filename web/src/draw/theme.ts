/** The colours of the page's theme, for canvases: colour("accent") is the value of --accent. */
export function theme(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => long(style.getPropertyValue(`--${name}`).trim());
}

/** A colour as #rrggbb: style sheets are built small, with #fff for #ffffff. */
const long = (colour: string) =>
  /^#[0-9a-f]{3}$/i.test(colour) ? `#${[...colour.slice(1)].map((c) => c + c).join("")}` : colour;

/** A colour of the theme (#rrggbb) with an opacity of 0 to 1. */
export const faint = (colour: string, opacity: number) =>
  colour +
  Math.round(opacity * 255)
    .toString(16)
    .padStart(2, "0");
