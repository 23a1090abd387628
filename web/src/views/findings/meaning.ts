import page from "../../../../docs/findings.md?raw";

export interface Paragraph {
  /** What it is about, as "What to do: "; of some "". */
  lead: string;
  text: string;
  /** Of a report, as an example. */
  quoted: boolean;
}

/** What docs/findings.md says of a kind of finding; nothing where it does not know the kind. */
export function meaningOf(kind: string): Paragraph[] {
  const section = page.split("\n## ").find((s) => s.startsWith(`${kind}\n`));
  return (section?.slice(kind.length).trim().split("\n\n") ?? []).map((p) => ({
    ...split(p.replace(/^> /gm, "").replaceAll("\n", " ").replaceAll("*", "")),
    quoted: p.startsWith("> "),
  }));
}

function split(text: string): { lead: string; text: string } {
  const [lead = ""] = /^(How|What) [a-z ]+: /.exec(text) ?? [];
  return { lead, text: text.slice(lead.length) };
}
