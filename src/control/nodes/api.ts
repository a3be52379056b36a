import { ApiError } from "../api/errors.ts";
import { operationsFor } from "../api/operation.ts";
import { pageQuery, paginate } from "../api/pagination.ts";
import type { NodeRegistry } from "../../platform/storage/nodes/node-registry.ts";
import type { InstallationOwner } from "../members/owner.ts";
import { nodeResource, NodeSchema } from "./resource.ts";

/** The services that these operations use. */
interface Services {
  nodeRegistry: Pick<NodeRegistry, "list">;
  owner: { current: InstallationOwner | undefined };
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
      // Other accounts may be customers', to whom the machines say nothing.
      if (account.id !== services.owner.current?.account.id)
        throw new ApiError(403, 9109, "The nodes are shown to the account of the installation's owner only");
      return paginate((await services.nodeRegistry.list()).map(nodeResource), query);
    },
  }),
];
