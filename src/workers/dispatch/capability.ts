import { capability } from "../../capability.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { processes } from "../../platform/capability-processes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { assets } from "../assets/capability.ts";
import { bindings } from "../capability.ts";
import { scripts } from "../scripts/capability.ts";
import { dispatchNamespaceType } from "./binding-type.ts";
import { CustomerRunCounts } from "./count-runs.ts";
import { DispatchUsage } from "./usage.ts";
import { declaration } from "./declaration.ts";
import { namespaceErrors } from "../scripts/namespaces/errors.ts";
import { namespaceErrorCodes } from "./api-errors.ts";

/** Namespaces of customers' scripts. */
export const dispatch = capability({
  name: "dispatch",
  processes: "all",
  declares: declaration,
  needs: [accounts, zones, assets, bindings, scripts, sandbox, processes],
  create({ cells, customerCells, scripts: stored, messageBus, own }) {
    const customerUsage = new DispatchUsage();
    stored.onGone((scriptId) => customerUsage.forget(scriptId));
    const tallies = [cells.dispatches, customerCells.dispatches];
    return {
      customerUsage,
      customerRuns: new CustomerRunCounts(tallies, customerUsage, messageBus, own),
    };
  },
  operations: async () => (await import("./api.ts")).dispatchOperations,
  // Edge processes have no work of their own, but they run scripts.
  load: ({ customerRuns }) => customerRuns.start(),
  close: ({ customerRuns }) => customerRuns.stop(),
  async reset({ customerUsage, customerRuns }) {
    await customerRuns.collect(); // cells have counts of scripts that get the same ids again
    customerUsage.reset();
  },
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

/** The usage of customers, which main answers. */
export const dispatchUsage = capability({
  name: "dispatch-usage",
  needs: [nodes, scripts, sandbox, dispatch],
  create: () => ({}),
  operations: async () => (await import("./api-usage.ts")).usageOperations,
});
