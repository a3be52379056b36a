import { operationsFor } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import type { NodeRegistry } from "../../platform/storage/nodes/node-registry.ts";
import { checkOwner, type OwnerServices } from "./api-owner-only.ts";
import { nodeResource, NodeSchema } from "./resource.ts";

/** The services that these operations use. */
interface Services extends OwnerServices {
  nodeRegistry: Pick<NodeRegistry, "list">;
}

const { listOperation } = operationsFor<Services>();

export const nodeOperations = [
  listOperation({
    id: "nodes_list",
    method: "GET",
    path: "/accounts/{account_id}/edge/nodes",
    summary: "List the nodes of this installation; only for the account of its owner",
    access: { scope: "account", permission: "account_settings:read" },
    query: pageQuery({ default: 50, max: 1000 }),
    result: NodeSchema,
    async handle({ account, query, services }) {
      checkOwner(account.id, services, "The nodes are");
      return paginate((await services.nodeRegistry.list()).map(nodeResource), query);
    },
  }),
];
