import { domainToASCII } from "node:url";
import { isIP } from "node:net";
import { parse } from "tldts";
import { ApiError } from "../api/errors.ts";
import type { PlanName } from "./plans.ts";

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
  /** The SOA serial: grows with every committed change of the zone's records. */
  serial: number;
  createdOn: number;
  modifiedOn: number;
  activatedOn: number | null;
  checkedOn: number | null;
}

export const zoneErrors = {
  notFound: (id: string) => new ApiError(404, 1001, `Invalid zone identifier: no zone has the id ${id}`),
  exists: (name: string) => new ApiError(400, 1061, `${name} already exists`, { pointer: "/body/name" }),
  invalidName: (name: string, why: string) =>
    new ApiError(400, 1002, `Expected a registrable domain name for name but received "${name}": ${why}`, {
      pointer: "/body/name",
    }),
  oneChange: (received: readonly string[]) =>
    new ApiError(
      400,
      1053,
      `Expected one of paused, type, plan or vanity_name_servers at a time but received ${received.join(", ")}`,
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

/** A zone's name in its stored form, lower-case ASCII; throws when no zone can have that name. */
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
  if (!name.includes(".")) throw zoneErrors.invalidName(input, "it has one label only");
  const { isIcann, isPrivate, publicSuffix } = parse(name);
  if (publicSuffix === name && (isIcann === true || isPrivate === true)) {
    throw zoneErrors.invalidName(input, "it is a public suffix, under which others register");
  }
  return name;
}
