import { expect, test } from "vitest";
import { base64, headOf } from "./heads";

/** Bytes of texts and little-endian numbers of 4 and 8 bytes. */
function packed(parts: (string | { small: number } | { large: number })[]): Uint8Array {
  const bytes = parts.map((part) => {
    if (typeof part === "string") return new TextEncoder().encode(part);
    const view = new DataView(new ArrayBuffer("small" in part ? 4 : 8));
    if ("small" in part) view.setUint32(0, part.small, true);
    else view.setBigUint64(0, BigInt(part.large), true);
    return new Uint8Array(view.buffer);
  });
  return new Uint8Array(bytes.flatMap((b) => [...b]));
}
const small = (small: number) => ({ small }),
  large = (large: number) => ({ large }),
  text = (t: string) => [large(t.length), t] as const;

/** A GGUF with a value of each kind, so many texts in its vocabulary, and two tensors. */
const gguf = (texts: number) =>
  packed([
    ...["GGUF", small(3), large(2), large(4)],
    ...[...text("a.number"), small(4), small(7)],
    ...[...text("a.text"), small(8), ...text("llama")],
    ...[...text("scores"), small(9), small(6), large(3), small(1), small(2), small(3)],
    ...[...text("words"), small(9), small(8), large(texts)],
    ...Array.from({ length: texts }, (_, i) => text(`word ${i}`)).flat(),
    ...[...text("one"), small(1), large(4), small(0), large(0)],
    ...[...text("two"), small(2), large(4), large(4), small(0), large(32)],
  ]);

const header = '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
  safetensors = packed([large(header.length), header]);

test.each([
  ["a small GGUF", gguf(3)],
  ["a GGUF whose vocabulary is larger than what is read at first", gguf(80_000)],
  ["safetensors", safetensors],
])("the header of %s alone", async (_, whole) => {
  const { bytes, head } = await headOf(new Blob([whole as BlobPart, new Uint8Array(5000)]));
  expect(bytes).toBe(whole.length + 5000);
  expect(head.length).toBe(whole.length);
  expect(head.every((b, i) => b === whole[i])).toBe(true);
});

test("a header that ends behind its file is handed out as it is", async () => {
  const cut = gguf(3).slice(0, 100);
  expect((await headOf(new Blob([cut]))).head).toEqual(cut);
});

test.each(["", "short", "a long text that is no header of anything"])("%j is refused", (text) =>
  expect(headOf(new Blob([text]))).rejects.toThrow("neither"),
);

test("Base64", () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 251);
  expect(Uint8Array.from(atob(base64(bytes)), (c) => c.charCodeAt(0))).toEqual(bytes);
});
