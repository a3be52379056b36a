import type { DnsRecord } from "../../records/record.ts";
import type { Standing } from "../../../control/zones/precedence.ts";
import type { DnsSettings } from "../../settings/dns-settings.ts";

/**
 * The configuration of a zone for the name server: everything except its records. Plain data, so that it can
 * be sent to threads.
 */
export interface ServedZoneConfiguration {
  id: string;
  accountId: string;
  name: string;
  nameServers: readonly string[];
  settings: DnsSettings;
  serial: number;
  /** Whether proxied names are answered with the edge's addresses instead of their own records. */
  isProxying: boolean;
  edgeAddresses: readonly string[];
  dnssec: ZoneKey | undefined;
  /**
   * Decides between zones of several accounts. Without it, a zone takes precedence over the zones around it.
   */
  standing?: Standing;
}

/** The key that signs a zone. */
export interface ZoneKey {
  /** PKCS #8, DER, in base64. */
  privateKey: string;
  /** As in a DNSKEY record, in base64. */
  publicKey: string;
  keyTag: number;
  /** Whether CDS and CDNSKEY ask the parent to remove the DS (RFC 8078 §4). */
  isLeaving: boolean;
  /** Whether other providers sign the zone too. Their keys are among its DNSKEY records (RFC 8901). */
  isMultiSigner: boolean;
}

/** The parts of a record that answers depend on. */
export type ServedRecord = Pick<
  DnsRecord,
  "type" | "content" | "data" | "priority" | "ttl" | "proxied" | "settings"
>;
