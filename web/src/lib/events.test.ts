import { expect, test } from "vitest";
import { events, type Sent } from "./events";

async function read(...pieces: (string | Uint8Array)[]): Promise<Sent[]> {
  const all: Sent[] = [],
    body = new ReadableStream<Uint8Array>({
      start(to) {
        for (const p of pieces) to.enqueue(typeof p === "string" ? new TextEncoder().encode(p) : p);
        to.close();
      },
    });
  for await (const e of events(body)) all.push(e);
  return all;
}

test("events come whole however the body is cut", async () => {
  const text =
      'event: samples\ndata: {"x":1}\nid: 17\n\n: nothing\n\ndata: a\r\ndata: ' +
      "b\r\n\r\nevent: end\ndata\n\n",
    whole = await read(text);
  expect(whole).toEqual([
    { name: "samples", data: '{"x":1}', id: "17" },
    { name: "message", data: "a\nb", id: undefined },
    { name: "end", data: "", id: undefined },
  ]);
  for (let at = 1; at < text.length; at++)
    expect(await read(text.slice(0, at), text.slice(at))).toEqual(whole);
});

test("a letter of several bytes may be cut, and an event without its end is none", async () => {
  const bytes = new TextEncoder().encode("data: größe\n\n");
  for (let at = 1; at < bytes.length; at++)
    expect(await read(bytes.slice(0, at), bytes.slice(at))).toEqual([
      { name: "message", data: "größe", id: undefined },
    ]);
  expect(await read("data: half\n")).toEqual([]);
});
