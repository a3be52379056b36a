import { domainToASCII } from "node:url";
import { isIP } from "node:net";
import { parse } from "tldts";
import type { PlanName } from "../../platform/config/plan-names.ts";
import { zoneErrors } from "./errors.ts";

export const zoneTypes = ["full", "partial"] as const;
export const zoneStatuses = ["initializing", "pending", "active", "moved"] as const;

/** A domain of an account. Times are milliseconds since 1970. */
export interface Zone {
  id: string;
  accountId: string;
  name: string;
  type: (typeof zoneTypes)[number];
  status: (typeof zoneStatuses)[number];
  paused: boolean;
  plan: PlanName;
  nameServers: string[];
  vanityNameServers: string[];
  verificationKey: string | null;
  smartRouting: "on" | "off";
  smartRoutingModifiedOn: number | null;
  /** The SOA serial, which grows with every committed change of the zone's records. */
  serial: number;
  createdOn: number;
  modifiedOn: number;
  activatedOn: number | null;
  checkedOn: number | null;
  /**
   * The name that authorizes a zone inside another account's zone: that of the zone whose records delegate
   * it, or its own if a TXT record in the public DNS proved its ownership. Null if neither.
   */
  authorizedBy: string | null;
}

/** A zone's name in its stored form, lower-case ASCII. Throws if no zone can have that name. */
export function normalizeZoneName(input: string): string {
  const trimmed = input.trim().replace(/\.$/, "").toLowerCase();
  const name = domainToASCII(trimmed);
  if (name === "" || /[^a-z0-9.-]/.test(name)) throw zoneErrors.invalidName(input, "it is not a host name");
  if (isIP(name) !== 0) throw zoneErrors.invalidName(input, "it is an IP address");
  if (name.length > 253) throw zoneErrors.invalidName(input, "it is longer than 253 characters");
  for (const label of name.split(".")) {
    if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) {
      throw zoneErrors.invalidName(
        input,
        `the label "${label}" is not 1 to 63 letters, digits and inner hyphens`,
      );
    }
  }
  if (!name.includes(".")) throw zoneErrors.invalidName(input, "it has only one label");
  const { isIcann, isPrivate, publicSuffix } = parse(name);
  if (publicSuffix === name && (isIcann === true || isPrivate === true)) {
    throw zoneErrors.invalidName(input, "it is a public suffix, under which others register");
  }
  return name;
}
