import { capability } from "../../capability.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { owner } from "../members/capability.ts";
import { metrics } from "../../platform/observability/capability.ts";
import { together } from "../api/together.ts";

/** Shows the nodes of the installation. */
export const nodesApi = capability({
  name: "nodes API",
  needs: [nodes, owner, metrics],
  create: () => ({}),
  async operations() {
    const { nodeOperations } = await import("./api.ts");
    const { overviewOperation } = await import("./api-overview.ts");
    return together([...nodeOperations, overviewOperation]);
  },
});
