import { defineErrors } from "../../../platform/domain-error.ts";

export const scriptDomainErrors = defineErrors("scriptDomains", {
  notFound: (id: string) => `The account has no domain with the id "${id}"`,
  taken: (hostname: string, service: string) =>
    `The host name "${hostname}" belongs to the script "${service}" already`,
  hasRecords: (hostname: string, records: readonly string[]) =>
    `The host name "${hostname}" has DNS records that lead past the edge: ${records.slice(0, 5).join(", ")}. Delete them, make them proxied, or let them be replaced with override_existing_dns_record`,
  foreign: (hostname: string) => ({
    message: `The host name "${hostname}" belongs to a zone of another account`,
    pointer: "/body/hostname",
  }),
  outside: (hostname: string) => ({
    message: `Expected a host name in a zone of this account but received "${hostname}"`,
    pointer: "/body/hostname",
  }),
});

export const routeErrors = defineErrors("scriptRoutes", {
  notFound: (id: string) => `The zone has no route with the id "${id}"`,
  forbidden: (zoneName: string) =>
    `Authentication error: the credentials lack "Workers Routes Write" on the zone ${zoneName}`,
  exists: (pattern: string) => `A route with the same pattern already exists: "${pattern}"`,
  invalid: (pattern: string, expected: string) => ({
    message: `Invalid route pattern ${JSON.stringify(pattern)}: expected ${expected}`,
    pointer: "/body/pattern",
  }),
});

export const subdomainErrors = defineErrors("subdomains", {
  none: () => "The account has no subdomain for its scripts",
  taken: (name: string) => `The subdomain "${name}" belongs to another account`,
  available: (name: string) => `The subdomain "${name}" is available`,
  invalid: (name: string) => ({
    message: `Expected a subdomain of 1 to 63 lower-case letters, digits and "-" but received ${JSON.stringify(name)}`,
    pointer: "/body/subdomain",
  }),
});
