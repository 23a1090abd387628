/** The colours of the page's theme, for canvases: colour("accent") is the value of --accent. */
export function theme(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** A colour of the theme (#rrggbb) with an opacity of 0 to 1. */
export const faint = (colour: string, opacity: number) => colour + Math.round(opacity * 255).toString(16).padStart(2, "0");
