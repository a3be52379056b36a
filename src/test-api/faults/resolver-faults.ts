import { setTimeout as delay } from "node:timers/promises";
import { isIP } from "node:net";
import { z } from "zod";
import { dnsName, milliseconds, selection, type FaultRules } from "./fault-rules.ts";

/** A fault of the resolver that the edge asks for addresses of origins, or its answer. */
export const ResolverFaultSchema = z.strictObject({
  name: dnsName.optional(),
  ...selection,
  then: z.union([
    z.enum(["nxdomain", "servfail", "timeout"]),
    z.array(z.string().refine((text) => isIP(text) !== 0, "Expected an IP address")).max(16),
    z.strictObject({ delayMs: milliseconds }),
  ]),
});
export type ResolverFault = z.output<typeof ResolverFaultSchema>;

const codes = { nxdomain: "ENOTFOUND", servfail: "EAI_AGAIN", timeout: "ETIMEOUT" };

/** The addresses of a fault; undefined if the real resolver must be asked. Throws the error of a failing lookup. */
export async function applyResolverFault(
  faults: FaultRules<ResolverFault>,
  asked: string,
): Promise<string[] | undefined> {
  const plain = (name: string): string => name.toLowerCase().replace(/\.$/, "");
  const applied = faults.apply(({ name }) => name === undefined || plain(name) === plain(asked));
  if (applied === undefined) return undefined;
  const { then } = applied.fault;
  if (Array.isArray(then)) return then;
  if (typeof then === "string")
    throw Object.assign(new Error(`a fault of the test kit: ${then} for ${asked}`), { code: codes[then] });
  await delay(then.delayMs);
  return undefined;
}
