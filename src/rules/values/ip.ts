import { isIPv6 } from "node:net";
import type { IpValue } from "./types.ts";

/** Parses an address to an {@link IpValue}; undefined if the text is not an address. */
export function parseIp(text: string): IpValue | undefined {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

function parseV4(text: string): number | undefined {
  const match = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/.exec(text);
  if (match === null) return undefined;
  let value = 0;
  for (let i = 1; i <= 4; i++) {
    const octet = Number(match[i]);
    if (octet > 255) return undefined;
    value = value * 256 + octet;
  }
  return value;
}

function parseV6(text: string): string | undefined {
  if (text.includes("%") || !isIPv6(text)) return undefined;
  const [head, tail] = text.split("::") as [string, string?];
  const left = groupsOf(head);
  const right = tail === undefined ? [] : groupsOf(tail);
  const gap = Array.from({ length: 8 - left.length - right.length }, () => 0);
  return String.fromCharCode(...[...left, ...gap, ...right].flatMap((group) => [group >> 8, group & 0xff]));
}

function groupsOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const v4 = parseV4(group) ?? 0;
    return [v4 >>> 16, v4 & 0xffff];
  });
}

/** Formats an address: dotted decimal, or the canonical IPv6 form (RFC 5952). */
export function formatIp(ip: IpValue): string {
  if (typeof ip === "number") return `${ip >>> 24}.${(ip >>> 16) & 255}.${(ip >>> 8) & 255}.${ip & 255}`;
  const groups = Array.from({ length: 8 }, (_, i) => (ip.charCodeAt(i * 2) << 8) | ip.charCodeAt(i * 2 + 1));
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${formatIp(groups[6]! * 65_536 + groups[7]!)}`;
  }
  const hex = groups.map((group) => group.toString(16));
  const run = longestZeroRun(groups);
  if (run.length < 2) return hex.join(":");
  return `${hex.slice(0, run.start).join(":")}::${hex.slice(run.start + run.length).join(":")}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let length = 0;
    while (groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  return best;
}

/** The bytes of an address in network order: 4 or 16. */
export function ipBytes(ip: IpValue): Buffer {
  if (typeof ip === "string") return Buffer.from(ip, "latin1");
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(ip);
  return bytes;
}

/** The address with every bit after the first `bits` cleared. */
export function networkOf(ip: IpValue, bits: number): IpValue {
  if (typeof ip === "number") return bits === 0 ? 0 : (ip & (-1 << (32 - bits))) >>> 0;
  return mapBytes(ip, (byte, i) => byte & keepMask(bits - i * 8));
}

/** The last address of the network of `bits` bits that starts at `ip`. */
export function lastOf(ip: IpValue, bits: number): IpValue {
  if (typeof ip === "number") return bits === 32 ? ip : (ip | (0xffff_ffff >>> bits)) >>> 0;
  return mapBytes(ip, (byte, i) => byte | (0xff & ~keepMask(bits - i * 8)));
}

function keepMask(bits: number): number {
  return bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xff << (8 - bits)) & 0xff;
}

function mapBytes(ip: string, change: (byte: number, i: number) => number): string {
  return String.fromCharCode(...Array.from(ip, (char, i) => change(char.charCodeAt(0), i)));
}

/** Order within one family; undefined across families. */
export function compareIp(a: IpValue, b: IpValue): number | undefined {
  if (typeof a !== typeof b) return undefined;
  return a < b ? -1 : a > b ? 1 : 0;
}
