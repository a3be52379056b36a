import { defineErrors } from "../../platform/domain-error.ts";

export const dnssecErrors = defineErrors("dnssec", {
  stillSigned: (name: string) =>
    `Expected an unsigned zone but ${name} is signed. Set the status to disabled, remove the DS record from the parent zone, and then delete`,
  notFull: (name: string) => ({
    message: `Expected a zone of type full but ${name} is partial, so its own name servers sign it`,
    pointer: "/body/status",
  }),
});
