import { type Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import type { IpRange } from "../values/ip-set.ts";
import { lastOf, networkOf, parseIp } from "../values/ip.ts";
import type { IpValue } from "../values/types.ts";

const isIpCharacter = (code: number): boolean => /[0-9a-fA-F:./]/.test(String.fromCharCode(code));
const noAddress = "couldn't parse address in network: invalid IP address syntax";

/** Reads one address. A network is an error that spans all of it. */
export function readIp(cursor: Cursor): IpValue {
  const start = cursor.pos;
  const text = cursor.takeWhile("IP address character", isIpCharacter);
  return addressOf(text, start);
}

/** Reads an element of a set: an address, `first..last`, or a network without host bits. */
export function readIpRange(cursor: Cursor): IpRange {
  const start = cursor.pos;
  const chunk = cursor.takeWhile("IP address character", isIpCharacter);
  const dots = chunk.indexOf("..");
  if (dots !== -1) {
    const first = addressOf(chunk.slice(0, dots), start);
    const last = addressOf(chunk.slice(dots + 2), start + dots + 2);
    if (typeof first !== typeof last || last < first) {
      throw new Fault("incompatible range bounds", start, cursor.pos);
    }
    return { first, last };
  }
  return networkRange(chunk, start);
}

function addressOf(text: string, start: number): IpValue {
  const ip = parseIp(text);
  if (ip === undefined) throw new Fault(noAddress, start, start + text.length);
  return ip;
}

function networkRange(chunk: string, start: number): IpRange {
  const slash = chunk.lastIndexOf("/");
  const address = slash === -1 ? chunk : chunk.slice(0, slash);
  const ip = parseLooseIp(address, slash !== -1);
  const firstSlash = chunk.indexOf("/");
  const addressEnd = start + (firstSlash === -1 ? chunk.length : firstSlash);
  if (ip === undefined) throw new Fault(noAddress, start, addressEnd);
  const width = typeof ip === "number" ? 32 : 128;
  const bits = slash === -1 ? width : lengthOf(chunk.slice(slash + 1), start + slash + 1);
  if (bits > width) {
    const family = width === 32 ? "Ipv4" : "Ipv6";
    throw new Fault(
      `invalid length for network: Network length ${bits} is too long for ${family} (maximum: ${width})`,
      start,
      start + chunk.length,
    );
  }
  if (networkOf(ip, bits) !== ip) throw new Fault("host part of address was not zero", start, addressEnd);
  return { first: ip, last: lastOf(ip, bits) };
}

function lengthOf(text: string, start: number): number {
  const fault = (reason: string): Fault =>
    new Fault(`couldn't parse length in network: ${reason}`, start, start + text.length);
  if (text === "") throw fault("cannot parse integer from empty string");
  if (!/^\d+$/.test(text)) throw fault("invalid digit found in string");
  const bits = Number(text);
  if (bits > 255) throw fault("number too large to fit in target type");
  return bits;
}

/** In sets, IPv4 octets may have leading zeros, and a network may omit its last octets, as in `10/8`. */
function parseLooseIp(text: string, isNetwork: boolean): IpValue | undefined {
  if (text.includes(":")) return parseIp(text);
  const octets = text.split(".");
  if (octets.some((octet) => !/^\d{1,3}$/.test(octet)) || octets.length > 4) return undefined;
  if (octets.length < 4 && !isNetwork) return undefined;
  while (octets.length < 4) octets.push("0");
  return parseIp(octets.map(Number).join("."));
}
