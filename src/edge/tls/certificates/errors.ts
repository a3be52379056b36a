import { defineErrors } from "../../../platform/domain-error.ts";

const hostsShown = 10;
function showHosts(hosts: readonly string[]): string {
  if (hosts.length === 0) return "no host name";
  const more = hosts.length > hostsShown ? ` and ${hosts.length - hostsShown} more` : "";
  return hosts.slice(0, hostsShown).join(", ") + more;
}

export const certificateErrors = defineErrors("certificates", {
  notFound: (id: string) => `No custom certificate of the zone has the id ${id}`,
  unreadable: (why: string) => ({
    message: `Expected certificates in PEM, the server's first, for certificate but ${why}`,
    pointer: "/body/certificate",
  }),
  unreadableKey: (why: string) => ({
    message: `Expected an unencrypted private key in PEM for private_key but ${why}`,
    pointer: "/body/private_key",
  }),
  mismatch: () => ({
    message: "The private key does not belong to the certificate",
    pointer: "/body/private_key",
  }),
  expired: (on: string) => ({ message: `The certificate expired on ${on}`, pointer: "/body/certificate" }),
  foreign: (zone: string, hosts: readonly string[]) => ({
    message: `Expected a certificate for ${zone} or names below it but received one for ${showHosts(hosts)}`,
    pointer: "/body/certificate",
  }),
  tooMany: (most: number) => `A zone has at most ${most} custom certificates`,
  unsupported: (name: string) => ({
    message: `${name} is not supported: keys are stored with the installation and uploaded with the certificate`,
    pointer: `/body/${name}`,
  }),
  noStaging: () => ({
    message: 'Expected "production" for deploy but received "staging": there is no staging network',
    pointer: "/body/deploy",
  }),
  brokenChain: (position: number) => ({
    message: `Certificate ${position} in the bundle was not issued by the one after it`,
    pointer: "/body/certificate",
  }),
});

export const packsMax = 100;

export const packErrors = defineErrors("certificatePacks", {
  notFound: (id: string) => `No certificate pack of the zone has the id ${id}`,
  noAuthority: () =>
    "No certificate can be ordered: this installation has no ACME authority (setting acme-directory)",
  tooMany: () => `A zone has at most ${packsMax} advanced certificate packs`,
  universal: () => "The universal certificate pack cannot be deleted: disable it at /ssl/universal/settings",
  unknownMethod: (method: string) => ({
    message: `Expected txt or http for validation_method but received ${JSON.stringify(method)}`,
    pointer: "/body/validation_method",
  }),
  universalMethod: () =>
    "The validation method of the universal certificate pack is set by this installation's `acme-challenge` setting and cannot be changed here",
  host: (index: number, host: string, why: string) => ({
    message: `Expected host names of the zone for hosts but received ${JSON.stringify(host)}: ${why}`,
    pointer: `/body/hosts/${index}`,
  }),
  method: (why: string) => ({
    message: `Expected http for validation_method but received txt: ${why}`,
    pointer: "/body/validation_method",
  }),
});
