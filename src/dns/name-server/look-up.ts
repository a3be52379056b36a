import { resolve, type Server } from "./transport/client.ts";
import type { ParentDs } from "../dnssec/dnssec.ts";
import { types } from "./wire/constants.ts";
import type { Resolved, AddressLookup } from "./zone/flattening.ts";

/** Minimum TTL in seconds, so that a name with a very short TTL is not looked up too often. */
const ttlMin = 10;
const ttlMax = 86_400;
const ttlOfNothing = 60;

/** The addresses of an external name, after following CNAMEs. Throws if no resolver answers. */
export async function lookUpAddresses(
  servers: readonly Server[],
  { target, type }: AddressLookup,
): Promise<Resolved> {
  const { answers } = await resolve(servers, target, type);
  const found = answers.filter(
    (answer) => answer.type === type && answer.rdata.length === (type === types.A ? 4 : 16),
  );
  const ttl = found.length === 0 ? ttlOfNothing : Math.min(...answers.map((answer) => answer.ttl));
  return {
    addresses: found.map(({ rdata }) => addressOf(rdata)),
    ttl: Math.min(Math.max(ttl, ttlMin), ttlMax),
  };
}

const addressOf = (rdata: Buffer): string =>
  rdata.length === 4
    ? rdata.join(".")
    : Array.from({ length: 8 }, (_, index) => rdata.readUInt16BE(index * 2).toString(16)).join(":");

/** The DS records of a zone at its parent. Throws if no resolver answers. */
export async function lookUpDs(servers: readonly Server[], zoneName: string): Promise<ParentDs> {
  const { answers } = await resolve(servers, zoneName, types.DS);
  const found = answers.filter((answer) => answer.type === types.DS && answer.rdata.length > 4);
  return dsOf(
    found.map(({ rdata }) => rdata),
    Math.max(0, ...found.map(({ ttl }) => ttl)),
  );
}

export const dsOf = (rdatas: readonly Buffer[], ttl: number): ParentDs => ({
  ttl,
  records: rdatas.map((rdata) => ({ keyTag: rdata.readUInt16BE(0), digest: rdata.toString("hex", 4) })),
});
