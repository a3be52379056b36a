import { defineErrors, DomainError } from "../../platform/domain-error.ts";
import { show, showList } from "../../platform/util/json.ts";

const publish = (name: string, key: string): string =>
  `publish a TXT record cloudflare-verify.${name} with the content "${key}"`;

/** The errors of zones. docs/reference/errors.md lists them with status and code. */
export const zoneErrors = defineErrors("zones", {
  notFound: (id: string) => `Invalid zone identifier: no zone has the id ${show(id)}`,
  exists: (name: string) => ({ message: `${name} already exists`, pointer: "/body/name" }),
  pendingElsewhere: (name: string, key: string) => ({
    message: `${name} already exists, and is pending in another account. To prove that you own it, ${publish(name, key)} and create the zone again`,
    pointer: "/body/name",
  }),
  insideForeign: (name: string, outer: string, nameServers: string, key: string) => ({
    message: `${name} is inside the zone ${outer} of another account. Please ensure you are providing the root domain and not any subdomains (e.g., example.com, not subdomain.example.com). To prove that you own the name, have NS records for ${name} that name ${nameServers} created in ${outer}, or ${publish(name, key)}`,
    pointer: "/body/name",
  }),
  aroundForeign: (name: string, key: string) => ({
    message: `Another account has a zone inside ${name}. To prove that you own ${name}, ${publish(name, key)} and create the zone again`,
    pointer: "/body/name",
  }),
  invalidName: (name: string, why: string) => ({
    message: `Expected a registrable domain name for name but received "${name}": ${why}`,
    pointer: "/body/name",
  }),
  platformName: (name: string, platformName: string) => ({
    message: `This zone cannot be added: ${name} is inside ${platformName}, which belongs to this installation`,
    pointer: "/body/name",
  }),
  oneChange: (received: readonly string[]) => ({
    message: `Expected only one of paused, type, plan and vanity_name_servers in a request but received ${showList(received)}`,
    pointer: "/body",
  }),
  noNameServers: () => ({
    message: "Expected vanity name servers inside the zone for vanity_name_servers",
    pointer: "/body/vanity_name_servers",
  }),
  tooSoon: (seconds: number) => ({
    message: `The zone was checked a moment ago. Try again in ${seconds} seconds`,
    retryAfterSeconds: seconds,
  }),
});

const unproven = new Set(["zones.pendingElsewhere", "zones.insideForeign", "zones.aroundForeign"]);
/** True if the zone may exist once its account has proved that it owns the name. */
export const isUnproven = (error: unknown): boolean =>
  error instanceof DomainError && unproven.has(error.kind);
