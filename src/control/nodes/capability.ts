import { capability } from "../../capability.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { owner } from "../members/capability.ts";
import { nodeOperations } from "./api.ts";

/** Shows the nodes of the installation. */
export const nodesApi = capability({
  name: "nodes API",
  needs: [nodes, owner],
  create: () => ({}),
  operations: nodeOperations,
});
