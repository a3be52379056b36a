import { ednsFlags, ednsOptions, types, udpBytesMax } from "./wire/constants.ts";
import type { Edns } from "./wire/query.ts";

/** What an answer says in its OPT record (RFC 6891). */
export interface EdnsAnswer {
  isDnssecOk: boolean;
  /** The upper eight bits of the code. */
  extendedRcode: number;
  nsid: Buffer | undefined;
  cookie: Buffer | undefined;
  extendedError: number | undefined;
}

const fixedBytes = 11;
const optionBytes = 4;

export const ednsAnswer = (edns: Edns, nsid: Buffer, rcode: number): EdnsAnswer => ({
  isDnssecOk: (edns.flags & ednsFlags.do) !== 0,
  extendedRcode: rcode >> 4,
  nsid: edns.wantsNsid ? nsid : undefined,
  cookie: undefined,
  extendedError: undefined,
});

export const ednsLength = ({ nsid, cookie, extendedError }: EdnsAnswer): number =>
  fixedBytes +
  (nsid === undefined ? 0 : optionBytes + nsid.length) +
  (cookie === undefined ? 0 : optionBytes + cookie.length) +
  (extendedError === undefined ? 0 : optionBytes + 2);

/** Writes the OPT record at `at`. */
export function writeEdns(answer: EdnsAnswer, out: Buffer, at: number): void {
  out[at] = 0; // the root is its owner
  let position = out.writeUInt16BE(types.OPT, at + 1);
  position = out.writeUInt16BE(udpBytesMax, position);
  out[position++] = answer.extendedRcode;
  out[position++] = 0; // version
  position = out.writeUInt16BE(answer.isDnssecOk ? ednsFlags.do : 0, position);
  position = out.writeUInt16BE(ednsLength(answer) - fixedBytes, position);
  const option = (code: number, value: Buffer): void => {
    position = out.writeUInt16BE(code, position);
    position = out.writeUInt16BE(value.length, position);
    position += value.copy(out, position);
  };
  if (answer.nsid !== undefined) option(ednsOptions.nsid, answer.nsid);
  if (answer.cookie !== undefined) option(ednsOptions.cookie, answer.cookie);
  if (answer.extendedError !== undefined) {
    option(ednsOptions.extendedError, Buffer.from([answer.extendedError >> 8, answer.extendedError & 255]));
  }
}
