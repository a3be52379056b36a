import { defineErrors } from "../../platform/domain-error.ts";

export const tokenErrors = defineErrors("tokens", {
  notFound: (id: string) => `No token has the id ${id}`,
  /** The caller's own token was revoked or has expired since the call was authenticated. */
  callerRevoked: () => "Invalid API Token",
  beyondCaller: (excess: string) => `The authority that this call grants, changes or removes ${excess}`,
});
