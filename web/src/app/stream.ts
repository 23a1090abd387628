// Server-sent events that go on after a restart of the server: from the last event that came, with no gap and nothing twice.

import { events } from "../lib/events";
import { api } from "./door";
import { answered } from "./frame/away";

export interface Stream { close(): void }

const againMs = 500, quickMs = 100;

/**
 * Listens at a path of the API; each event's data is JSON. A broken stream is opened again with the id of the last event, by which the server
 * goes on there. The event `end` closes it for good. `of` is what the stream tells of: once the server has it no more, gone is called and
 * nothing is tried again.
 */
export function stream(path: string, of: string, on: Record<string, (data: never) => void>, gone?: (status: number) => void): Stream {
  const closed = new AbortController(), { signal } = closed;
  let last = "", timer = 0;
  const listen = async (): Promise<void> => {
    const from = last ? `${path.includes("?") ? "&" : "?"}from=${encodeURIComponent(last)}` : "";
    const { status, body } = await api(path + from, { headers: { Accept: "text/event-stream" }, cache: "no-store", signal });
    if (status !== 200 || !body) return;
    answered(200);
    for await (const { name, data, id } of events(body)) {
      if (signal.aborted) return;
      if (id) last = id;
      if (name === "end") closed.abort();
      on[name]?.(JSON.parse(data) as never);
    }
  };
  const open = () => void listen().catch((e: unknown) => { if (e instanceof SyntaxError) throw e; /* else it broke off */ }).finally(() => { if (!signal.aborted) timer = window.setTimeout(() => void reopen(), againMs); });
  const reopen = async (): Promise<void> => {
    let status = 0;
    try {
      ({ status } = await api(of, { cache: "no-store", signal }));
    } catch { /* it is away */ }
    if (signal.aborted) return;
    answered(status);
    if (status >= 400 && status < 500 && status !== 401) return void gone?.(status);
    timer = window.setTimeout(status === 200 ? open : () => void reopen(), status === 200 ? quickMs : againMs);
  };
  open();
  return { close: () => { closed.abort(); clearTimeout(timer); } };
}
