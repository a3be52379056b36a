import { ByteWriter } from "../name-server/wire/byte-writer.ts";
import { types } from "../name-server/wire/constants.ts";
import { parentOf, type NameKey } from "../name-server/wire/name.ts";

const nameBytesMax = 255;
const labelBytesMax = 63;

/**
 * The rdata of the NSEC record that lists a name's types, or denies the name's existence if `present` is
 * undefined (RFC 9824). It covers no other name: its next name is the direct successor.
 */
export function nsecRdata(owner: NameKey, present: readonly number[] | undefined): Buffer {
  const listed = [...(present ?? [types.NXNAME]), types.RRSIG, types.NSEC];
  return new ByteWriter().latin1(nextName(owner)).bytes(bitmap(listed)).done();
}

/** The direct successor of a name (RFC 4471 §3.1.1). */
function nextName(owner: NameKey): NameKey {
  if (owner.length + 2 <= nameBytesMax) return `\x01\0${owner}`;
  const length = owner.charCodeAt(0);
  const label = owner.slice(1, 1 + length);
  const rest = parentOf(owner);
  if (owner.length < nameBytesMax && length < labelBytesMax)
    return `${String.fromCharCode(length + 1)}${label}\0${rest}`;
  // Only names crafted to reach this case end in byte 255. For them any successor will do.
  const last = Math.min(label.charCodeAt(length - 1) + 1, 255);
  return `${String.fromCharCode(length)}${label.slice(0, -1)}${String.fromCharCode(last)}${rest}`;
}

/** The type bitmap of RFC 4034 §4.1.2: windows of 256 types, each without trailing zero bytes. */
function bitmap(listed: readonly number[]): Buffer {
  const writer = new ByteWriter();
  const windows = Map.groupBy(
    [...new Set(listed)].sort((a, b) => a - b),
    (type) => type >> 8,
  );
  for (const [window, members] of windows) {
    const bits = Buffer.alloc(((members.at(-1)! & 255) >> 3) + 1);
    for (const type of members) bits[(type & 255) >> 3]! |= 0x80 >> (type & 7);
    writer.uint8(window).uint8(bits.length).bytes(bits);
  }
  return writer.done();
}
