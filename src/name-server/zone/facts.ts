import type { DnsRecord } from "../../dns/record.ts";
import type { DnsSettings } from "../dns-settings.ts";

/** A zone's own part in what is answered: all but its records. Plain data, so that it can go to another thread. */
export interface ZoneFacts {
  id: string;
  accountId: string;
  name: string;
  nameServers: readonly string[];
  settings: DnsSettings;
  serial: number;
  /** Proxied names are answered with the edge's addresses; otherwise with what stands behind them. */
  isProxying: boolean;
  edgeAddresses: readonly string[];
  dnssec: ZoneKey | undefined;
}

/** The key that a zone is signed with. */
export interface ZoneKey {
  /** PKCS #8, DER, in base64. */
  privateKey: string;
  /** As in a DNSKEY record, in base64. */
  publicKey: string;
  keyTag: number;
  /** The DS is to be taken out of the parent: CDS and CDNSKEY say so (RFC 8078 §4). */
  isLeaving: boolean;
  /** Others sign the zone too, and their keys stand among its DNSKEY records (RFC 8901). */
  isMultiSigner: boolean;
}

/** What of a record decides on answers. */
export type ServedRecord = Pick<
  DnsRecord,
  "type" | "content" | "data" | "priority" | "ttl" | "proxied" | "settings"
>;
