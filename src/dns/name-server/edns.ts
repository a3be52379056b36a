import { ednsFlags, ednsOptions, types, udpBytesMax } from "./wire/constants.ts";
import type { Edns } from "./wire/query.ts";

/** The fields of a response's OPT record (RFC 6891). */
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
  const optionsBytes = ednsLength(answer) - fixedBytes;
  out[at] = 0; // the root is its owner
  out[at + 1] = 0;
  out[at + 2] = types.OPT;
  out[at + 3] = udpBytesMax >> 8;
  out[at + 4] = udpBytesMax & 255;
  out[at + 5] = answer.extendedRcode;
  out[at + 6] = 0; // version
  out[at + 7] = answer.isDnssecOk ? ednsFlags.do >> 8 : 0;
  out[at + 8] = 0;
  out[at + 9] = optionsBytes >> 8;
  out[at + 10] = optionsBytes & 255;
  if (optionsBytes > 0) writeOptions(answer, out, at + fixedBytes);
}

function writeOptions(answer: EdnsAnswer, out: Buffer, at: number): void {
  let position = at;
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
