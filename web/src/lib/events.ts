// Server-sent events out of a body that is read: as EventSource has them, which cannot send a
// header.

export interface Sent {
  name: string;
  data: string;
  id: string | undefined;
}

/** The events of a body, one after the other, until it ends. One that has no data is none. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Sent> {
  const reader = body.getReader(),
    text = new TextDecoder();
  let rest = "",
    name = "",
    id: string | undefined,
    data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + text.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const whole of lines) {
        const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole,
          at = line.indexOf(":");
        const field = at < 0 ? line : line.slice(0, at),
          said = at < 0 ? "" : line.slice(line[at + 1] === " " ? at + 2 : at + 1);
        if (field === "event") name = said;
        else if (field === "id") id = said;
        else if (field === "data") data.push(said);
        else if (line === "") {
          if (data.length) yield { name: name || "message", data: data.join("\n"), id };
          name = "";
          id = undefined;
          data = [];
        }
      }
    }
  } finally {
    void reader.cancel().catch(() => {
      /* it has ended */
    });
  }
}
