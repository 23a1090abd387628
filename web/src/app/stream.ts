// Server-sent events that go on after a restart of the server: from the last event that came, with no gap and nothing twice.

import { answered } from "./frame/away";

export interface Stream { close(): void }

const againMs = 500, quickMs = 100;

/**
 * Listens at a path of the API; each event's data is JSON. A broken stream is opened again with the id of the last event, by which the server
 * goes on there. The event `end` closes it for good. `of` is what the stream tells of: once the server has it no more, gone is called and
 * nothing is tried again.
 */
export function stream(path: string, of: string, on: Record<string, (data: never) => void>, gone?: (status: number) => void): Stream {
  let source: EventSource | null = null, last = "", timer = 0, closed = false;
  const open = (): void => {
    const from = last ? `${path.includes("?") ? "&" : "?"}from=${encodeURIComponent(last)}` : "";
    const now = source = new EventSource(`/api/v1${path}${from}`);
    now.onopen = () => answered(200);
    for (const [name, then] of Object.entries(on)) now.addEventListener(name, (e: MessageEvent<string>) => {
      if (closed || typeof e.data !== "string") return; // the browser's own "open" has no data
      if (e.lastEventId) last = e.lastEventId;
      if (name === "end") close();
      then(JSON.parse(e.data) as never);
    });
    now.onerror = () => { // the browser's own trying again would wait for longer, and stops at an answer that is not a stream
      now.close();
      if (!closed) timer = window.setTimeout(() => void reopen(), againMs);
    };
  };
  const reopen = async (): Promise<void> => {
    let status = 0;
    try {
      ({ status } = await fetch(`/api/v1${of}`, { cache: "no-store" }));
    } catch { /* it is away */ }
    answered(status);
    if (closed) return;
    if (status >= 400 && status < 500 && status !== 401) return void gone?.(status);
    timer = window.setTimeout(status === 200 ? open : () => void reopen(), status === 200 ? quickMs : againMs);
  };
  const close = () => { closed = true; source?.close(); clearTimeout(timer); };
  open();
  return { close };
}
