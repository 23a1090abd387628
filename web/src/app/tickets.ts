// What navigator.locks does, for pages that have none, as over plain HTTP from another machine:
// tickets in localStorage, which tabs share.
//
//	draws a ticket ──▶ waits until those drawn before it are gone or expired ─┐
//	takes it away ◀── runs, and renews it ◀──────────────────────────────────┘
//
// It is not exact: of two tabs that draw within the time a write takes to reach the other, both
// may run.

/** The part of navigator.locks that a page needs to take turns. */
export interface Locks {
  query(): Promise<{ held?: { name?: string }[]; pending?: { name?: string }[] }>;
  request(
    name: string,
    options: { signal: AbortSignal },
    run: () => Promise<void>,
  ): Promise<unknown>;
}

interface Ticket {
  name: string;
  id: string;
  drawnMs: number;
  untilMs: number;
}

const prefix = "hightide-ticket-",
  settleMs = 100,
  lookMs = 200,
  renewMs = 1_000,
  keptMs = 5_000;

/**
 * All that are valid, those drawn first before the others. What expired is taken away: its tab is
 * gone, or it is asleep and writes it again.
 */
function tickets(): Ticket[] {
  const found: Ticket[] = [];
  for (const key of Object.keys(localStorage).filter((k) => k.startsWith(prefix))) {
    const ticket = JSON.parse(localStorage.getItem(key) ?? "null") as Ticket | null;
    if (ticket && ticket.untilMs > Date.now()) found.push(ticket);
    else localStorage.removeItem(key);
  }
  return found.sort((a, b) => a.drawnMs - b.drawnMs || (a.id < b.id ? -1 : 1));
}

const firstOf = (name: string) => tickets().find((t) => t.name === name);

export const drawnTickets: Locks = {
  query: () => {
    const all = tickets(),
      first = (t: Ticket) => all.find((o) => o.name === t.name) === t;
    return Promise.resolve({ held: all.filter(first), pending: all.filter((t) => !first(t)) });
  },
  request: async (name, { signal }, run) => {
    const id = [...crypto.getRandomValues(new Uint32Array(2))].map((n) => n.toString(36)).join(""),
      key = prefix + id,
      drawnMs = Date.now();
    const write = () =>
      localStorage.setItem(
        key,
        JSON.stringify({ name, id, drawnMs, untilMs: Date.now() + keptMs } satisfies Ticket),
      );
    const over = new AbortController(),
      takeAway = () => localStorage.removeItem(key);
    addEventListener("pagehide", takeAway, { signal: over.signal });
    write();
    const renewing = setInterval(write, renewMs);
    try {
      for (let wait = settleMs; !signal.aborted; wait = lookMs) {
        await new Promise((done) => setTimeout(done, wait));
        if (firstOf(name)?.id === id) break;
      }
      signal.throwIfAborted();
      await run();
    } finally {
      clearInterval(renewing);
      over.abort();
      takeAway();
    }
  },
};
