// The headers of a model's files: what of them is read, and no weight.

/** A header, as far as it was found; "" where it is whole, else why a file has none. */
export interface Head {
  bytes: number; // of the whole file
  head: Uint8Array;
}

const largest = 64 * 2 ** 20, // of a header
  first = 2 ** 20; // what is read at first

/** Where a header ends: a place behind what is here says that more has to be read. */
type End = (begin: DataView) => number;

/** The end of a safetensors header: 8 bytes with its length, then that. */
const endOfSafetensors: End = (begin) => 8 + Number(begin.getBigUint64(0, true));

/** Bytes of GGUF's values by their type; 8 is a text, 9 an array. */
const sizes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
};

/** The end of a GGUF header: its values, then what it says of each tensor. */
const endOfGGUF: End = (begin) => {
  const little = begin.getUint16(4, true) !== 0;
  let at = 8;
  const small = () => begin.getUint32((at += 4) - 4, little),
    large = () => Number(begin.getBigUint64((at += 8) - 8, little)),
    skip = (n: number) => {
      at += n;
    };
  const value = (type: number): void => {
    if (type === 8) skip(large());
    else if (type !== 9) skip(sizes[type] ?? Infinity);
    else {
      const of = small(),
        n = large(),
        size = sizes[of];
      if (size) skip(n * size);
      else for (let i = 0; i < n; i++) value(of);
    }
  };
  const tensors = large(),
    values = large();
  for (let i = 0; i < values; i++) {
    skip(large());
    value(small());
  }
  for (let i = 0; i < tensors; i++) {
    skip(large());
    skip(8 * small() + 12);
  }
  return at;
};

/** How files begin, and where their headers end. */
const kinds: { begins: (b: DataView) => boolean; end: End }[] = [
  { begins: (b) => b.getUint32(0) === 0x47475546, end: endOfGGUF },
  { begins: (b) => b.byteLength > 8 && b.getUint8(8) === 0x7b, end: endOfSafetensors },
];

/**
 * The header of a file of safetensors or GGUF. What is neither, or has none that ends, is an error.
 * A header that seems to go on behind the file is handed out as it is: who reads it says what is
 * wrong.
 */
export async function headOf(file: Blob): Promise<Head> {
  for (let n = first; ; n *= 4) {
    const head = new Uint8Array(await file.slice(0, n).arrayBuffer()),
      begin = new DataView(head.buffer);
    const kind = head.length > 8 ? kinds.find((k) => k.begins(begin)) : undefined;
    if (!kind) throw new Error("it is neither a config.json nor safetensors nor GGUF");
    const end = endIn(kind.end, begin);
    if (end <= head.length) return { bytes: file.size, head: head.slice(0, end) };
    if (head.length >= file.size) return { bytes: file.size, head };
    if (n >= largest) throw new Error("its header does not end");
  }
}

/** Where a header ends; Infinity: behind what is here. */
function endIn(end: End, begin: DataView): number {
  try {
    return end(begin);
  } catch (e) {
    if (e instanceof RangeError) return Infinity;
    throw e;
  }
}

/** Bytes in Base64. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000)
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
