import { ednsFlags, ednsOptions, flags, headerBytes, rcodes, types } from "../wire/constants.ts";
import { rdataText } from "./rdata-text.ts";
import { readName, shownName, typeName } from "./read-name.ts";

/** A record as dig prints it. */
export interface ShownRecord {
  name: string;
  ttl: number;
  class: string;
  type: string;
  data: string;
}

/** A response as dig prints it. */
export interface ShownMessage {
  rcode: string;
  flags: string[];
  answer: ShownRecord[];
  authority: ShownRecord[];
  additional: ShownRecord[];
  edns?: { udp: number; flags: string[]; nsid?: string; extendedErrors: { code: number; text: string }[] };
}

const rcodeNames: Readonly<Record<number, string>> = {
  [rcodes.noError]: "NOERROR",
  [rcodes.formatError]: "FORMERR",
  [rcodes.serverFailure]: "SERVFAIL",
  [rcodes.nameError]: "NXDOMAIN",
  [rcodes.notImplemented]: "NOTIMP",
  [rcodes.refused]: "REFUSED",
  [rcodes.notAuth]: "NOTAUTH",
  [rcodes.badVersion]: "BADVERS",
  [rcodes.badCookie]: "BADCOOKIE",
};
/** Of RFC 8914 and RFC 9824: those that the name server sends. */
const extendedErrorTexts: Readonly<Record<number, string>> = {
  20: "Not Authoritative",
  21: "Not Supported",
  22: "No Reachable Authority",
  30: "Invalid Query Type",
};
/** Reads a response of our own name server. */
export function readMessage(message: Buffer): ShownMessage {
  const word = message.readUInt16BE(2);
  const named = { ...flags, ra: 0x0080 };
  let at = headerBytes;
  for (let question = message.readUInt16BE(4); question > 0; question--) at = readName(message, at).end + 4;
  const shown: ShownMessage = {
    rcode: "",
    flags: Object.entries(named).flatMap(([name, bit]) => ((word & bit) === 0 ? [] : [name])),
    answer: [],
    authority: [],
    additional: [],
  };
  let rcode = word & 15;
  for (const [index, section] of (["answer", "authority", "additional"] as const).entries())
    for (let left = message.readUInt16BE(6 + 2 * index); left > 0; left--) {
      const { name, end } = readName(message, at);
      const type = message.readUInt16BE(end);
      const rclass = message.readUInt16BE(end + 2);
      const ttl = message.readUInt32BE(end + 4);
      const start = end + 10;
      at = start + message.readUInt16BE(end + 8);
      if (type === types.OPT) {
        rcode |= (ttl >>> 24) << 4;
        shown.edns = readEdns(message.subarray(start, at), rclass, ttl & 0xffff);
      } else
        shown[section].push({
          name: shownName(name),
          ttl,
          class: rclass === 3 ? "CH" : "IN",
          type: typeName(type),
          data: rdataText(type, message, start, at),
        });
    }
  shown.rcode = rcodeNames[rcode] ?? `RCODE${rcode}`;
  return shown;
}

function readEdns(options: Buffer, udp: number, word: number): NonNullable<ShownMessage["edns"]> {
  const edns: NonNullable<ShownMessage["edns"]> = {
    udp,
    flags: Object.entries(ednsFlags).flatMap(([name, bit]) => ((word & bit) === 0 ? [] : [name])),
    extendedErrors: [],
  };
  for (let at = 0; at + 4 <= options.length;) {
    const code = options.readUInt16BE(at);
    const value = options.subarray(at + 4, at + 4 + options.readUInt16BE(at + 2));
    if (code === ednsOptions.nsid) edns.nsid = value.toString();
    if (code === ednsOptions.extendedError) {
      const info = value.readUInt16BE(0);
      const more = value.toString("utf8", 2);
      const text = extendedErrorTexts[info] ?? "";
      edns.extendedErrors.push({ code: info, text: more === "" ? text : `${text}: ${more}` });
    }
    at += 4 + value.length;
  }
  return edns;
}
