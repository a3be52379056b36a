import { A, AAAA } from "./address.ts";
import { CAA } from "./caa.ts";
import { DS, SMIMEA, SSHFP, TLSA } from "./digests.ts";
import { CERT, DNSKEY, OPENPGPKEY } from "./keys.ts";
import { LOC } from "./location.ts";
import { CNAME, MX, NS, PTR } from "./names.ts";
import { NAPTR, SRV, URI } from "./services.ts";
import { HTTPS, SVCB } from "./svcb.ts";
import { TXT } from "./text.ts";
import type { RecordType } from "./type.ts";

/** Every record type that the API accepts. */
export const recordTypes = {
  A,
  AAAA,
  CAA,
  CERT,
  CNAME,
  DNSKEY,
  DS,
  HTTPS,
  LOC,
  MX,
  NAPTR,
  NS,
  OPENPGPKEY,
  PTR,
  SMIMEA,
  SRV,
  SSHFP,
  SVCB,
  TLSA,
  TXT,
  URI,
} as const satisfies Record<string, RecordType>;

export type RecordTypeName = keyof typeof recordTypes;
export const recordTypeNames = Object.keys(recordTypes) as RecordTypeName[];
