// What a page was made of: JSON, compressed with gzip, in base64, in an element of the page.

/** The data that the page holds; null where it holds none. */
export async function embedded<T>(id: string): Promise<T | null> {
  const text = document.getElementById(id)?.textContent?.trim() ?? "";
  if (!text) return null;
  const packed = new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]);
  return (await new Response(
    packed.stream().pipeThrough(new DecompressionStream("gzip")),
  ).json()) as T;
}
