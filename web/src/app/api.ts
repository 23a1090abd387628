// The client of /api/v1: plain requests, an error that says what to do, and streams that come back
// after a restart of the server.

import type { Report, RunList, Status } from "../api";
import { save } from "../draw/save";
import { api as request } from "./door";
import { answered, doubt } from "./frame/away";

/** What the server answered in place of data: one line for people. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function ask<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const response = await request(path, {
    method,
    signal: signal ?? null,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  }).catch((e: unknown) => {
    if (signal?.aborted) throw e;
    answered(0);
    throw new Problem(0, "The server does not answer. Is hightide ui still running?");
  });
  answered(response.status);
  if (response.status === 401)
    throw new Problem(
      0,
      response.headers.get("X-Hightide-Sign-In")
        ? "This browser is signed out. Reload the page to sign in."
        : "This browser is not let in any more. " +
            "Type hightide ui in a terminal of the account that runs the server, " +
            "and open the address that it prints.",
    );
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** What a server said in place of data. */
async function problemOf(response: Response): Promise<Problem> {
  if (response.status === 503) doubt();
  const text = await response.text();
  let said = text.trim() || response.statusText;
  try {
    said = (JSON.parse(text) as { detail?: string }).detail ?? said;
  } catch {
    /* it was plain text */
  }
  return new Problem(response.status, said);
}

/** Saves what the API has at a path as a file. A link would not do: it carries no secret. */
export async function saveFile(path: string, name: string): Promise<void> {
  const response = await request(path);
  answered(response.status);
  if (!response.ok) throw await problemOf(response);
  save(await response.blob(), name);
}

/** A path with its query; what is undefined or empty is left out. */
export function query(path: string, asked: Record<string, string | number | undefined>): string {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(asked))
    if (value !== undefined && value !== "") words.set(key, String(value));
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

export const get = <T>(path: string, signal?: AbortSignal) =>
  ask<T>("GET", path, undefined, signal);
export const post = <T>(path: string, body: unknown, signal?: AbortSignal) =>
  ask<T>("POST", path, body, signal);
export const patch = <T>(path: string, body: unknown) => ask<T>("PATCH", path, body);
export const remove = <T>(path: string) => ask<T>("DELETE", path);

export const status = () => get<Status>("/status");
export const runs = (search: string, signal?: AbortSignal, limit?: number) =>
  get<RunList>(query("/runs", { search, limit }), signal);
export const report = (id: string, signal?: AbortSignal) =>
  get<Report>(`/runs/${encodeURIComponent(id)}/report`, signal);
