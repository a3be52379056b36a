import { defineErrors } from "../../platform/domain-error.ts";

export const smartRoutingErrors = defineErrors("smartRouting", {
  notEditable: (why: string) => `The setting smart_routing cannot be changed: ${why}`,
});
