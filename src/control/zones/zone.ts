import { domainToASCII } from "node:url";
import { isIP } from "node:net";
import { parse } from "tldts";
import { ApiError } from "../api/errors.ts";
import { show, showList } from "../../platform/util/json.ts";
import type { PlanName } from "../../platform/config/plan-names.ts";

export const zoneTypes = ["full", "partial"] as const;
export const zoneStatuses = ["initializing", "pending", "active", "moved"] as const;

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

/** A zone that may exist only after its account proves that it owns the name. */
export class UnprovenZone extends ApiError {}

const publish = (name: string, key: string): string =>
  `publish a TXT record cloudflare-verify.${name} with the content "${key}"`;

export const zoneErrors = {
  notFound: (id: string) =>
    new ApiError(404, 1001, `Invalid zone identifier: no zone has the id ${show(id)}`),
  exists: (name: string) => new ApiError(400, 1061, `${name} already exists`, { pointer: "/body/name" }),
  pendingElsewhere: (name: string, key: string) =>
    new UnprovenZone(
      400,
      1061,
      `${name} already exists, and is pending in another account. To prove that you own it, ${publish(name, key)} and create the zone again`,
      { pointer: "/body/name" },
    ),
  insideForeign: (name: string, outer: string, nameServers: string, key: string) =>
    new UnprovenZone(
      400,
      1099,
      `${name} is inside the zone ${outer} of another account. Please ensure you are providing the root domain and not any subdomains (e.g., example.com, not subdomain.example.com). To prove that you own the name, have NS records for ${name} that name ${nameServers} created in ${outer}, or ${publish(name, key)}`,
      { pointer: "/body/name" },
    ),
  aroundForeign: (name: string, key: string) =>
    new UnprovenZone(
      400,
      1099,
      `Another account has a zone inside ${name}. To prove that you own ${name}, ${publish(name, key)} and create the zone again`,
      { pointer: "/body/name" },
    ),
  invalidName: (name: string, why: string) =>
    new ApiError(400, 1002, `Expected a registrable domain name for name but received "${name}": ${why}`, {
      pointer: "/body/name",
    }),
  platformName: (name: string, platformName: string) =>
    new ApiError(
      400,
      1097,
      `This zone cannot be added: ${name} is inside ${platformName}, which belongs to this installation`,
      { pointer: "/body/name" },
    ),
  oneChange: (received: readonly string[]) =>
    new ApiError(
      400,
      1053,
      `Expected only one of paused, type, plan and vanity_name_servers in a request but received ${showList(received)}`,
      { pointer: "/body" },
    ),
  noNameServers: () =>
    new ApiError(400, 1116, "Expected vanity name servers inside the zone for vanity_name_servers", {
      pointer: "/body/vanity_name_servers",
    }),
  tooSoon: (seconds: number) =>
    new ApiError(429, 1224, `The zone was checked a moment ago. Try again in ${seconds} seconds`, {
      retryAfterSeconds: seconds,
    }),
};

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
