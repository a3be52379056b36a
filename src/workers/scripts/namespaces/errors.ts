import { defineErrors } from "../../../platform/domain-error.ts";

export const namespaceErrors = defineErrors("dispatch", {
  notFound: (name: string) => `The specified dispatch namespace does not exist on this account: "${name}"`,
  exists: (name: string) => `A dispatch namespace with the name "${name}" already exists on this account`,
  name: (name: string) => ({
    message: `Expected a namespace name of up to 255 letters, digits, "-", "_" and "." but received ${JSON.stringify(name)}`,
    pointer: "/body/name",
  }),
});
