import { z } from "zod";
import { operationsFor } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Cells } from "../../sandbox/cells.ts";
import { readAccess, type ScriptServices } from "../scripts/api-collection.ts";
import { ownerInCells } from "../scripts/runtime-script.ts";
import { TimeSchema } from "../scripts/resources.ts";
import type { Script } from "../scripts/script.ts";
import { namespaceErrorCodes } from "./api-errors.ts";
import type { CustomerRunCounts } from "./count-runs.ts";
import type { CustomerUsage, DispatchUsage } from "./usage.ts";

interface Services extends ScriptServices {
  customerUsage: DispatchUsage;
  customerRuns: CustomerRunCounts;
  customerCells: Pick<Cells, "isQuarantined">;
}

const { listOperation } = operationsFor<Services>(namespaceErrorCodes);

const UsageSchema = z
  .object({
    script_name: z.string(),
    since: TimeSchema,
    requests: z.int(),
    faults: z.int(),
    cpu_ms: z.number(),
    last_fault: z.object({ at: TimeSchema, message: z.string() }).nullable(),
    quarantined: z.boolean(),
  })
  .meta({
    id: "DispatchUsage",
    description: "The runs of a customer's script on the node that answers, in the last hour",
  });

type Used = readonly [script: Script, usage: CustomerUsage];
const orders: Record<"requests" | "faults" | "cpu_ms", (usage: CustomerUsage) => number> = {
  requests: ({ requests }) => requests,
  faults: ({ faults }) => faults,
  cpu_ms: ({ cpuMs }) => cpuMs,
};

/** The customers of a namespace that had runs lately. */
export const usageOperation = listOperation({
  id: "dispatch_namespace_usage",
  method: "GET",
  path: "/accounts/{account_id}/edge/dispatch/namespaces/{namespace_name}/usage",
  summary: "List the customers of a dispatch namespace by requests, faults or CPU time of the last hour",
  access: readAccess,
  query: pageQuery({ default: 100, max: 1000 }).extend({
    order: z.enum(["requests", "faults", "cpu_ms"]).default("requests"),
  }),
  result: UsageSchema,
  async handle({ query, account, params, services }) {
    const { customerUsage, customerRuns, customerCells, namespaces, scripts } = services;
    const namespace = namespaces.get(account.id, params["namespace_name"]!);
    await customerRuns.collect();
    const used = [...customerUsage.scriptIds].flatMap((id): Used[] => {
      const [script, usage] = [scripts.findById(id), customerUsage.of(id)];
      return script?.namespaceId === namespace.id && usage !== undefined ? [[script, usage]] : [];
    });
    const by = orders[query.order];
    used.sort(([a, one], [b, other]) => by(other) - by(one) || (a.name < b.name ? -1 : 1));
    const since = isoTime(customerUsage.since);
    const page = paginate(used, query);
    return {
      ...page,
      items: page.items.map(([{ id, name }, { requests, faults, cpuMs, lastFault }]) => ({
        script_name: name,
        since,
        requests,
        faults,
        cpu_ms: Math.round(cpuMs * 100) / 100,
        last_fault:
          lastFault === undefined ? null : { at: isoTime(lastFault.at), message: lastFault.message },
        quarantined: customerCells.isQuarantined(
          ownerInCells({ accountId: account.id, namespace: namespace.name, name, scriptId: id }),
        ),
      })),
    };
  },
});
