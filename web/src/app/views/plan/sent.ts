// What is dropped on the page: the configuration, or headers of weights. Kept in this browser, so
// that a reload shows the same; a configuration is small enough for the address.

import { base64, headOf } from "../../../lib/heads";

/** What of a model's files is sent. */
export interface Sent {
  name: string;
  config?: unknown;
  files: { name: string; bytes: number; head: Uint8Array }[];
}

const isIndex = (name: string) => name.endsWith(".safetensors.index.json");

/** Reads headers; what a file cannot be used for is an error with its name. */
export async function read(dropped: File[]): Promise<Sent> {
  const sent: Sent = { name: "", files: [] };
  for (const file of dropped) {
    try {
      if (file.name.endsWith(".json") && !isIndex(file.name))
        sent.config = parsed(await file.text());
      else if (isIndex(file.name))
        sent.files.push({
          name: file.name,
          bytes: file.size,
          head: new Uint8Array(await file.arrayBuffer()),
        });
      else sent.files.push({ name: file.name, ...(await headOf(file)) });
    } catch (e) {
      throw new Error(`${file.name}: ${(e as Error).message}.`, { cause: e });
    }
  }
  const names = dropped.map((f) => f.name);
  sent.name = (names.find((n) => !n.endsWith(".json")) ?? names[0] ?? "").slice(0, 200);
  return sent;
}

/** A text of JSON, with null for the words of Python that JSON does not have. */
function parsed(text: string): unknown {
  if (text.length > 2 ** 23) throw new Error("too large for a configuration");
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return JSON.parse(text.replace(/(?<=[:,[]\s*)(-?Infinity|NaN)(?=\s*[,\]}])/g, "null"));
  }
}

/** As a request has it. */
export const inRequest = ({ name, config, files }: Sent) => ({
  name,
  ...(config === undefined ? {} : { config }),
  ...(files.length
    ? { files: files.map((f) => ({ name: f.name, bytes: f.bytes, head: base64(f.head) })) }
    : {}),
});

const inAddress = 6000; // characters of a configuration

/** Of an address: the configuration, or by what the rest is found in this browser. */
export function parameters(sent: Sent): Record<string, string> {
  const config = JSON.stringify(sent.config);
  return sent.files.length === 0 && config.length <= inAddress
    ? { sent: sent.name, config }
    : { sent: sent.name, kept: keyOf(sent) };
}

/** What an address means; null: nothing was sent, or this browser does not have it. */
export async function ofAddress(params: Readonly<Record<string, string>>): Promise<Sent | null> {
  if (params.config)
    return {
      name: params.sent ?? "config.json",
      config: JSON.parse(params.config) as unknown,
      files: [],
    };
  return params.kept ? kept(params.kept).catch(() => null) : null;
}

/** By what it is kept: the same files again are one. */
const keyOf = (sent: Sent): string =>
  [sent.name, sent.files.length, sent.files.reduce((sum, f) => sum + f.bytes, 0)].join(" ");

const store = "sent",
  most = 8; // that are kept

function inStore<T>(
  mode: IDBTransactionMode,
  does: (of: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  return new Promise((done, fail) => {
    const opening = indexedDB.open("hightide-plan", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(store);
    opening.onerror = () => fail(opening.error!);
    opening.onsuccess = () => {
      const request = does(opening.result.transaction(store, mode).objectStore(store));
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error!);
      request.transaction!.oncomplete = () => opening.result.close();
    };
  });
}

const kept = (key: string) =>
  inStore<Sent | undefined>("readonly", (of) => of.get(key) as IDBRequest<Sent | undefined>).then(
    (sent) => sent ?? null,
  );

/** Keeps what an address cannot hold. Where a browser does not, a reload asks for it again. */
export async function keep(sent: Sent): Promise<void> {
  if (!parameters(sent).kept) return;
  try {
    if ((await inStore("readonly", (of) => of.count())) >= most)
      await inStore("readwrite", (of) => of.clear());
    await inStore("readwrite", (of) => of.put(sent, keyOf(sent)));
  } catch {
    /* a browser that keeps nothing */
  }
}
