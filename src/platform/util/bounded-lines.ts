import type { Readable } from "node:stream";

const newline = 0x0a;

/** Calls `take` with each line of a stream, truncated to `bytesMax` bytes. */
export function eachLine(stream: Readable, bytesMax: number, take: (line: string) => void): void {
  let parts: Buffer[] = [];
  let room = bytesMax;
  const add = (part: Buffer): void => {
    if (part.length > 0 && room > 0) parts.push(Buffer.from(part.subarray(0, room)));
    room -= Math.min(room, part.length);
  };
  const end = (): void => {
    take(Buffer.concat(parts).toString());
    parts = [];
    room = bytesMax;
  };
  stream.on("data", (chunk: Buffer) => {
    let at = 0;
    for (let next = chunk.indexOf(newline); next >= 0; next = chunk.indexOf(newline, at)) {
      // Most lines are whole and short, and are not copied.
      if (parts.length === 0 && next - at <= bytesMax) take(chunk.toString("utf8", at, next));
      else {
        add(chunk.subarray(at, next));
        end();
      }
      at = next + 1;
    }
    add(chunk.subarray(at));
  });
  stream.on("end", () => {
    if (parts.length > 0) end();
  });
}
