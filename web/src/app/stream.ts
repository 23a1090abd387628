// Server-sent events that go on after a restart of the server: from the last event that came, with
// no gap and nothing twice.

import { events } from "../lib/events";
import { api } from "./door";
import { answered } from "./frame/away";
import { turn } from "./turn";

export interface Stream {
  close(): void;
}

const againMs = 500,
  quickMs = 100;

/**
 * Listens at a path of the API; each event's data is JSON. A broken stream is opened again with the
 * id of the last event, by which the server goes on there; so is one that was left as other tabs
 * listened, or nobody saw the page (turn.ts). The event `end` closes it for good. `of` is what the
 * stream tells of: once the server has it no more, gone is called and nothing is tried again.
 */
export function stream(
  path: string,
  of: string,
  on: Record<string, (data: never) => void>,
  gone?: (status: number) => void,
): Stream {
  let last = "";
  const listen = async (signal: AbortSignal): Promise<void> => {
    const from = last ? `${path.includes("?") ? "&" : "?"}from=${encodeURIComponent(last)}` : "";
    const { status, body } = await api(path + from, {
      headers: { Accept: "text/event-stream" },
      cache: "no-store",
      signal,
    });
    if (status !== 200 || !body) return;
    answered(200);
    for await (const { name, data, id } of events(body)) {
      if (signal.aborted) return;
      if (id) last = id;
      if (name === "end") mine.end();
      on[name]?.(JSON.parse(data) as never);
    }
  };
  const open = (signal: AbortSignal): void =>
    void listen(signal)
      .catch((e: unknown) => {
        if (e instanceof SyntaxError) throw e; /* else it broke off */
      })
      .finally(() => later(againMs, reopen, signal));
  const reopen = async (signal: AbortSignal): Promise<void> => {
    let status = 0;
    try {
      ({ status } = await api(of, { cache: "no-store", signal }));
    } catch {
      /* it is away */
    }
    if (signal.aborted) return;
    answered(status);
    if (status >= 400 && status < 500 && status !== 401) {
      mine.end();
      return void gone?.(status);
    }
    later(status === 200 ? quickMs : againMs, status === 200 ? open : reopen, signal);
  };
  const mine = turn(open);
  return { close: () => mine.end() };
}

const later = (ms: number, then: (signal: AbortSignal) => unknown, signal: AbortSignal) => {
  if (signal.aborted) return;
  const timer = setTimeout(() => then(signal), ms);
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
};
