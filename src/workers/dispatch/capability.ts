import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { assets } from "../assets/capability.ts";
import { bindings } from "../capability.ts";
import { scripts } from "../scripts/capability.ts";
import { dispatchOperations } from "./api.ts";
import { dispatchNamespaceType } from "./binding-type.ts";
import { declaration } from "./declaration.ts";
import { namespaceErrors } from "../scripts/namespaces/errors.ts";
import { namespaceErrorCodes } from "./api-errors.ts";

/** Namespaces of customers' scripts. */
export const dispatch = capability({
  name: "dispatch",
  processes: "all",
  declares: declaration,
  needs: [accounts, zones, assets, bindings, scripts],
  create: () => ({}),
  operations: dispatchOperations,
  errors: [{ title: "Dispatch namespaces", errors: namespaceErrors, codes: namespaceErrorCodes }],
  bindings: ({ namespaces }) => ({
    dispatch_namespace: {
      type: dispatchNamespaceType,
      isolate: {
        module: "workers/runtime/worker/dispatch.js",
        factory: "dispatchNamespace",
        className: "DispatchNamespace",
        systemEntrypoint: "Dispatch",
      },
      exists: async (accountId, name) => namespaces.find(accountId, name) !== undefined,
    },
  }),
});
