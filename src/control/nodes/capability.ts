import { capability } from "../../capability.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { owner } from "../members/capability.ts";
import { metrics } from "../../platform/observability/capability.ts";
import { together } from "../api/operation.ts";
import { nodeOperations } from "./api.ts";
import { overviewOperation } from "./api-overview.ts";

/** Shows the nodes of the installation. */
export const nodesApi = capability({
  name: "nodes API",
  needs: [nodes, owner, metrics],
  create: () => ({}),
  operations: together([...nodeOperations, overviewOperation]),
});
