import { z } from "zod";
import { operationsFor, type Call } from "../../control/api/operation.ts";
import { pageQuery, paginate } from "../../control/api/pagination.ts";
import type { NodeRegistry } from "../../platform/storage/nodes/node-registry.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Cells } from "../../sandbox/cells.ts";
import { quantileMs } from "../../sandbox/dispatches/cpu-histogram.ts";
import { readAccess } from "../scripts/api-collection.ts";
import {
  ownerOf,
  type DispatchNamespace,
  type DispatchNamespaces,
} from "../scripts/namespaces/namespaces.ts";
import { ownerInCells } from "../scripts/runtime-script.ts";
import { TimeSchema } from "../scripts/resources.ts";
import type { Script } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import { namespaceErrorCodes } from "./api-errors.ts";
import type { CustomerRunCounts } from "./count-runs.ts";
import { noUsage, type CustomerUsage, type DispatchUsage } from "./usage.ts";

interface Services {
  namespaces: DispatchNamespaces;
  scripts: Scripts;
  nodeRegistry: Pick<NodeRegistry, "live">;
  customerUsage: DispatchUsage;
  customerRuns: CustomerRunCounts;
  customerCells: Pick<Cells, "isQuarantined">;
}

const { listOperation, operation } = operationsFor<Services>(namespaceErrorCodes);

const UsageSchema = z
  .object({
    script_name: z.string(),
    since: TimeSchema,
    requests: z.int(),
    faults: z.int(),
    cpu_ms: z.number(),
    cpu_ms_p50: z
      .number()
      .nullable()
      .meta({ description: "no more than so much CPU time in half of the runs" }),
    cpu_ms_p99: z.number().nullable().meta({ description: "null if it is above the highest limit" }),
    last_fault: z.object({ at: TimeSchema, message: z.string() }).nullable(),
    quarantined: z.boolean(),
  })
  .meta({
    id: "DispatchUsage",
    description: "The runs of a customer's script on the node that answers, in the last hour",
  });

const path = "/accounts/{account_id}/edge/dispatch/namespaces/{namespace_name}";
const lateCode = 10_014;
const otherNodesCode = 10_015;
const finite = (ms: number | undefined): number | null => (ms === undefined || ms === Infinity ? null : ms);

type Used = readonly [script: Script, usage: CustomerUsage];
const orders: Record<"requests" | "faults" | "cpu_ms", (usage: CustomerUsage) => number> = {
  requests: ({ requests }) => requests,
  faults: ({ faults }) => faults,
  cpu_ms: ({ cpuMs }) => cpuMs,
};

type AnyCall = Call<unknown, unknown, Services>;

/** The namespace of the path, after the counts of its customers were collected. Says which of them are missing. */
async function collected({ services, account, params, messages }: AnyCall): Promise<DispatchNamespace> {
  const { customerRuns, namespaces, nodeRegistry } = services;
  const namespace = namespaces.get(account.id, params["namespace_name"]!);
  await customerRuns.collect();
  const late = customerRuns.late(account.id);
  if (late > 0)
    messages.push({
      code: lateCode,
      message: `The figures of ${late} busy process(es) of scripts are missing, and follow when they answer`,
    });
  if (nodeRegistry.live > 1)
    messages.push({
      code: otherNodesCode,
      message: `The figures are those of the node that answers. Ask the other ${nodeRegistry.live - 1} node(s) for theirs`,
    });
  return namespace;
}

function resource(
  { services: { customerUsage, customerCells } }: AnyCall,
  namespace: DispatchNamespace,
  [{ id, name }, { requests, faults, cpuMs, cpuRuns, lastFault }]: Used,
): z.input<typeof UsageSchema> {
  const owner = { accountId: namespace.accountId, namespace: namespace.name, name, scriptId: id };
  return {
    script_name: name,
    since: isoTime(customerUsage.since),
    requests,
    faults,
    cpu_ms: Math.round(cpuMs * 100) / 100,
    cpu_ms_p50: finite(quantileMs(cpuRuns, requests, 0.5)),
    cpu_ms_p99: finite(quantileMs(cpuRuns, requests, 0.99)),
    last_fault: lastFault === undefined ? null : { at: isoTime(lastFault.at), message: lastFault.message },
    quarantined: customerCells.isQuarantined(ownerInCells(owner)),
  };
}

/** The runs of customers, which main answers. */
export const usageOperations = [
  listOperation({
    id: "dispatch_namespace_usage",
    method: "GET",
    path: `${path}/usage`,
    summary: "List the customers of a dispatch namespace by requests, faults or CPU time of the last hour",
    access: readAccess,
    query: pageQuery({ default: 100, max: 1000 }).extend({
      order: z.enum(["requests", "faults", "cpu_ms"]).default("requests"),
    }),
    result: UsageSchema,
    async handle(call) {
      const { customerUsage, scripts } = call.services;
      const namespace = await collected(call);
      const used = [...customerUsage.scriptIds].flatMap((id): Used[] => {
        const [script, usage] = [scripts.findById(id), customerUsage.of(id)];
        return script?.namespaceId === namespace.id && usage !== undefined ? [[script, usage]] : [];
      });
      const by = orders[call.query.order];
      used.sort(([a, one], [b, other]) => by(other) - by(one) || (a.name < b.name ? -1 : 1));
      const page = paginate(used, call.query);
      return { ...page, items: page.items.map((each) => resource(call, namespace, each)) };
    },
  }),
  operation({
    id: "dispatch_script_usage",
    method: "GET",
    path: `${path}/scripts/{script_name}/usage`,
    summary: "Get the requests, faults and CPU time of a customer's script in the last hour",
    access: readAccess,
    result: UsageSchema,
    async handle(call) {
      const namespace = await collected(call);
      const script = call.services.scripts.get(ownerOf(namespace), call.params["script_name"]!);
      return resource(call, namespace, [script, call.services.customerUsage.of(script.id) ?? noUsage]);
    },
  }),
];
