import { z } from "zod";
import { bindingName, bindingType, missingScript, scriptName } from "../binding-type.ts";

/** A binding to a namespace of customers' scripts. */
export const dispatchNamespaceType = bindingType({
  fields: {
    namespace: z.string().min(1).max(255),
    outbound: z
      .strictObject({
        worker: z.strictObject({
          service: scriptName,
          environment: z.literal("production").optional(),
          entrypoint: z.string().max(255).optional(),
        }),
        params: z
          .array(z.strictObject({ name: bindingName }))
          .max(64)
          .optional(),
      })
      .optional(),
  },
  async check({ namespace, outbound }, context) {
    if (!(await context.resources.exists("dispatch_namespace", context.accountId, namespace)))
      return `the dispatch namespace "${namespace}", which does not exist on this account`;
    return outbound === undefined ? undefined : missingScript(outbound.worker.service, context);
  },
});
