import { z } from "zod";
import type { TakeQuestion } from "../../dns/name-server/under-test.ts";
import { flags, headerBytes, rcodes, types } from "../../dns/name-server/wire/constants.ts";
import { nameKey } from "../../dns/name-server/wire/name.ts";
import { readQuery, type Query } from "../../dns/name-server/wire/query.ts";
import { dnsName, milliseconds, selection, type FaultRules } from "./fault-rules.ts";

const typeNames = Object.keys(types) as [keyof typeof types];

/** A fault of the name server. */
export const DnsFaultSchema = z.strictObject({
  name: dnsName.optional(),
  type: z.enum(typeNames, "Expected a type such as A, AAAA or TXT").optional(),
  ...selection,
  then: z.union([
    z.enum(["servfail", "nxdomain", "refused", "drop", "truncate"]),
    z.strictObject({ delayMs: milliseconds }),
  ]),
});
export type DnsFault = z.output<typeof DnsFaultSchema>;

const codes = { servfail: rcodes.serverFailure, nxdomain: rcodes.nameError, refused: rcodes.refused };

/** Applies faults to the questions of clients. */
export const dnsFaults =
  (faults: FaultRules<DnsFault>): TakeQuestion =>
  ({ message, isTcp, send, goOn }) => {
    if (faults.isEmpty) return false;
    const query = readQuery(message, message.length);
    if (query === undefined || query.questionEnd === headerBytes) return false;
    const applied = faults.apply(
      ({ name, type, then }) =>
        (name === undefined || nameKey(name) === query.name) &&
        (type === undefined || types[type] === query.type) &&
        // Over TCP an answer is never truncated.
        !(then === "truncate" && isTcp),
    );
    if (applied === undefined) return false;
    const { then } = applied.fault;
    if (typeof then === "object") setTimeout(goOn, then.delayMs).unref();
    else if (then === "drop") send(undefined);
    else if (then === "truncate") send(answerOf(query, message, rcodes.noError, flags.tc));
    else send(answerOf(query, message, codes[then], 0));
    return true;
  };

/** An answer with the question and nothing else. */
function answerOf(query: Query, message: Buffer, rcode: number, more: number): Buffer {
  const answer = Buffer.from(message.subarray(0, query.questionEnd));
  const kept = query.flags & (flags.rd | flags.cd);
  answer.writeUInt16BE(flags.qr | (query.opcode << 11) | kept | more | rcode, 2);
  answer.writeUInt16BE(1, 4);
  answer.fill(0, 6, headerBytes);
  return answer;
}
