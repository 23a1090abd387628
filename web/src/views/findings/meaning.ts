import page from "../../../../docs/findings.md?raw";

export interface Paragraph {
  text: string;
  /** Of a report, as an example. */
  quoted: boolean;
}

/** What docs/findings.md says of a kind of finding; nothing where it does not know the kind. */
export function meaningOf(kind: string): Paragraph[] {
  const section = page.split("\n## ").find((s) => s.startsWith(`${kind}\n`));
  return (section?.slice(kind.length).trim().split("\n\n") ?? []).map((p) => ({
    text: p.replace(/^> /gm, "").replaceAll("\n", " ").replaceAll("*", ""),
    quoted: p.startsWith("> "),
  }));
}
