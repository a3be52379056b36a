import { defineErrors } from "../../platform/domain-error.ts";
import { previewLimits } from "./limits.ts";

const retryAfterSeconds = 2;

export const previewErrors = defineErrors("previews", {
  accountBusy: () => ({
    message: `Expected at most ${previewLimits.accountMax} previews of an account at once`,
    retryAfterSeconds,
  }),
  busy: () => ({
    message: `Expected at most ${previewLimits.totalMax} previews of this installation at once`,
    retryAfterSeconds,
  }),
  ended: (why: string) => `The preview was ended: ${why}`,
  unavailable: () =>
    "The preview cannot run now, because no process could be started. The server's log says why",
  header: (name: string) => ({
    message: `Expected headers of a visitor but received "${name}", which the platform sets itself`,
    pointer: "/metadata/request/headers",
  }),
  object: (binding: string) => ({
    message: `The binding "${binding}" of type durable_object_namespace needs a class that a binding of the script has already: a preview makes no classes`,
    pointer: "/metadata/bindings",
  }),
});
