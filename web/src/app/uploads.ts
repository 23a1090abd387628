// Files on their way to the server: sent with progress, read there within limits, and opened when
// they are what they seem. Any page may be left meanwhile.

import { bytes } from "../lib/format";
import { status } from "./api";
import { secrets } from "./door";

export interface Upload {
  name: string;
  size: number;
  sent: number;
  state: "waiting" | "sending" | "reading" | "done" | "failed";
  problem: string; // why it failed
  opens: string; // the page that shows it, once it is done
  cancel(): void;
}

interface Answer {
  id?: string;
  run?: string;
  detail?: string;
}

const all: Upload[] = [],
  followers = new Set<() => void>();
const changed = () => {
  for (const f of [...followers]) f();
};

export const uploads = (): readonly Upload[] => all;

/** Calls after every change, until what it returns is called. */
export function followUploads(then: () => void): () => void {
  followers.add(then);
  return () => {
    followers.delete(then);
  };
}

export function forget(upload: Upload): void {
  const i = all.indexOf(upload);
  if (i >= 0) all.splice(i, 1);
  changed();
}

/** Sends files one after the other; done is told of each that is open. */
export async function send(files: File[], done: (upload: Upload) => void): Promise<void> {
  const mine = files.map((file) => {
    const upload: Upload = {
      name: file.name,
      size: file.size,
      sent: 0,
      state: "waiting",
      problem: "",
      opens: "",
      cancel: () => {
        /* it has not begun */ forget(upload);
      },
    };
    all.push(upload);
    return [file, upload] as const;
  });
  changed();
  const limit = await status().then(
    (s) => s.max_upload_bytes ?? 0,
    () => null,
  );
  for (const [file, upload] of mine) {
    if (!all.includes(upload)) continue;
    const refused =
      limit === null
        ? "The server does not answer. Is hightide ui still running?"
        : refusal(file, limit);
    if (refused) Object.assign(upload, { state: "failed", problem: refused });
    else await one(file, upload);
    changed();
    if (upload.opens) {
      forget(upload);
      done(upload);
    }
  }
}

/** What is known before anything is sent. */
function refusal(file: File, limit: number): string {
  if (limit === 0) return "This server takes no uploads; hightide ui FILE opens the file.";
  if (file.size === 0) return "The file is empty, or a folder. Drop the files in it.";
  if (file.size > limit)
    return (
      `It has ${bytes(file.size)}, and the server takes ${bytes(limit)}. ` +
      `hightide ui ${file.name} opens it where it is.`
    );
  return "";
}

function one(file: File, upload: Upload): Promise<void> {
  return new Promise((end) => {
    const request = new XMLHttpRequest(); // fetch tells nothing of how much was sent
    const fail = (problem: string) => {
      Object.assign(upload, { state: "failed", problem });
      end();
    };
    upload.state = "sending";
    upload.cancel = () => {
      request.abort();
      forget(upload);
      end();
    };
    request.open("POST", `/api/v1/snapshots?${new URLSearchParams({ name: file.name })}`);
    for (const [name, value] of Object.entries({
      "Content-Type": "application/octet-stream",
      ...secrets(),
    }))
      request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (e) => {
      upload.sent = e.loaded;
      if (e.loaded === e.total) upload.state = "reading";
      changed();
    });
    request.upload.addEventListener("load", () => {
      Object.assign(upload, { state: "reading", sent: file.size });
      changed();
    });
    request.addEventListener("error", () =>
      fail(
        `The connection broke off after ${bytes(upload.sent)}. ` +
          "Is hightide ui still running, and the file still there?",
      ),
    );
    request.addEventListener("load", () => {
      let answer: Answer = {};
      try {
        answer = JSON.parse(request.responseText) as Answer;
      } catch {
        /* it was plain text */
      }
      if (request.status !== 201)
        return fail(
          answer.detail ??
            (request.responseText.trim() || `The server answered ${request.status}.`),
        );
      Object.assign(upload, {
        state: "done",
        opens: answer.run
          ? `/runs/${encodeURIComponent(answer.run)}`
          : `/snapshots/${encodeURIComponent(answer.id ?? "")}`,
      });
      end();
    });
    request.send(file);
    changed();
  });
}
