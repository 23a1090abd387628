// How a character of a terminal looks (SGR), as the program asked for it. What it is shown in is
// told by ink.ts.

/** 0 to 255: of the palette; from trueColour on: red, green and blue. */
export type Colour = number;
export const trueColour = 0x1000000;

export interface Style {
  readonly fg?: Colour;
  readonly bg?: Colour;
  readonly bold?: true;
  readonly dim?: true;
  readonly italic?: true;
  readonly underline?: true;
  readonly strike?: true;
  readonly inverse?: true;
  readonly link?: string; // http(s), checked
}

export const plain: Style = {};

type Change = { -readonly [K in keyof Style]: Style[K] | undefined };

/** A style after the parameters of one SGR sequence; what is not known changes nothing. */
export function styled(style: Style, parameters: string): Style {
  const groups = parameters.split(";").map((g) => g.split(":"));
  let to: Change = { ...style };
  const number = (text: string | undefined) =>
    text === undefined || text === "" ? 0 : Number(text);
  for (let i = 0; i < groups.length; i++) {
    const group = groups[i]!,
      code = number(group[0]);
    if (code === 0) to = style.link === undefined ? {} : { link: style.link };
    else if (code === 1) to.bold = true;
    else if (code === 2) to.dim = true;
    else if (code === 3) to.italic = true;
    else if (code === 4) to.underline = group[1] === "0" ? undefined : true;
    else if (code === 7) to.inverse = true;
    else if (code === 9) to.strike = true;
    else if (code === 21) to.underline = true;
    else if (code === 22) to.bold = to.dim = undefined;
    else if (code === 23) to.italic = undefined;
    else if (code === 24) to.underline = undefined;
    else if (code === 27) to.inverse = undefined;
    else if (code === 29) to.strike = undefined;
    else if (code >= 30 && code <= 37) to.fg = code - 30;
    else if (code >= 40 && code <= 47) to.bg = code - 40;
    else if (code >= 90 && code <= 97) to.fg = code - 82;
    else if (code >= 100 && code <= 107) to.bg = code - 92;
    else if (code === 39) to.fg = undefined;
    else if (code === 49) to.bg = undefined;
    else if (code === 38 || code === 48) {
      const apart = group.length === 1; // 38;5;N, else 38:5:N
      const words = apart ? groups.slice(i + 1, i + 5).map((g) => g[0]) : group.slice(1);
      const mode = number(words[0]);
      let colour: Colour | undefined;
      if (mode === 5 && words.length >= 2) {
        if (number(words[1]) <= 255) colour = number(words[1]);
        if (apart) i += 2;
      } else if (mode === 2) {
        const parts = (!apart && words.length >= 5 ? words.slice(2, 5) : words.slice(1, 4)).map(
          number,
        ); // 38:2::R:G:B has a colour space
        if (parts.length === 3 && parts.every((p) => p <= 255))
          colour = trueColour + (parts[0]! << 16) + (parts[1]! << 8) + parts[2]!;
        if (apart) i += 4;
      } else if (apart) break; // nobody knows how many parameters belong to it
      if (colour !== undefined) to[code === 38 ? "fg" : "bg"] = colour;
    }
  }
  for (const key of Object.keys(to) as (keyof Style)[]) if (to[key] === undefined) delete to[key];
  return to as Style;
}

/**
 * The address of a link where it is one of the web; a text else. Never javascript:, file: or data:.
 */
export function safeLink(address: string): string | undefined {
  if (address.length > 2048 || !/^https?:\/\//i.test(address)) return undefined;
  try {
    const url = new URL(address);
    return (url.protocol === "https:" || url.protocol === "http:") && !url.username && !url.password
      ? url.href
      : undefined;
  } catch {
    return undefined;
  }
}

export const same = (a: Style, b: Style): boolean =>
  a === b ||
  (a.fg === b.fg &&
    a.bg === b.bg &&
    a.bold === b.bold &&
    a.dim === b.dim &&
    a.italic === b.italic &&
    a.underline === b.underline &&
    a.strike === b.strike &&
    a.inverse === b.inverse &&
    a.link === b.link);
