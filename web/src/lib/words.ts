// A command line as a shell takes it, cut into words. commandLine in format.ts is the way back.

/**
 * The words of a line. Quotes and backslashes are a shell's; nothing is expanded. An error says
 * what is not closed.
 */
export function words(line: string): string[] {
  const out: string[] = [];
  let word = "",
    begun = false,
    quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote) {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && /["\\$`]/.test(line[i + 1] ?? "")) word += line[++i];
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      begun = true;
    } else if (c === "\\") {
      if (line[i + 1] === "\n") {
        i++;
        continue;
      } // a line that goes on
      if (i + 1 === line.length) throw new Error("The line ends with a backslash.");
      word += line[++i];
      begun = true;
    } else if (/\s/.test(c)) {
      if (begun) out.push(word);
      [word, begun] = ["", false];
    } else {
      word += c;
      begun = true;
    }
  }
  if (quote) throw new Error(`A ${quote} is not closed.`);
  if (begun) out.push(word);
  return out;
}
