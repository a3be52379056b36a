import { defineErrors } from "../../platform/domain-error.ts";

/** Errors of zone transfers. */
export const transferErrors = defineErrors("transfers", {
  notFound: (what: string, id: string) => `There is no ${what} ${id} in this account`,
  none: (zoneName: string) => `${zoneName} has no outgoing transfer. Create it first`,
  disabled: (zoneName: string) => `The outgoing transfer of ${zoneName} is disabled. Enable it first`,
  exists: (zoneName: string) => `${zoneName} already has an outgoing transfer. Change it with PUT`,
  nameTaken: (name: string) => ({
    message: `A TSIG key named ${name} already exists in this account`,
    pointer: "/body/name",
  }),
  inUse: (what: string, user: string) => `This ${what} is in use by ${user}. Change that first`,
  unknownReference: (field: string, id: string) => ({
    message: `Expected ids of this account in ${field} but received ${id}`,
    pointer: `/body/${field}`,
  }),
  notServed: (zoneName: string) =>
    `Expected a zone of type full but ${zoneName} is partial, so its transfers come from its own name servers`,
});
