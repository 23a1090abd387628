// Bytes for the tests of faults: the checksum of a recording's header, and a small file that unpacks to a large one.

import { createGzip } from "node:zlib";

/** CRC-32C, as Go's hash/crc32 has it with the table of Castagnoli. */
export function crc32c(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** A pickle that goes on for so many bytes of nothing, compressed. */
export async function gzipZeros(bytes) {
  const gzip = createGzip({ level: 1 }),
    parts = [],
    piece = Buffer.alloc(1 << 20, "N0"); // None, and away with it
  gzip.on("data", (part) => parts.push(part));
  const ended = new Promise((done) => gzip.on("end", done));
  gzip.write(Buffer.from([0x80, 4]));
  for (let i = 0; i < bytes / piece.length; i++)
    if (!gzip.write(piece)) await new Promise((done) => gzip.once("drain", done));
  gzip.end();
  await ended;
  return Buffer.concat(parts);
}
