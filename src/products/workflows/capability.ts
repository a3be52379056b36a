import { capability } from "../../capability.ts";
import { nodes } from "../../platform/capability-nodes.ts";
import { storage } from "../../platform/capability.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
import { workflowBinding } from "./binding.ts";
import { createWorkflows } from "./workflow-services.ts";
import { shown, workflowsAtEdges } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { workflowErrors } from "./errors.ts";
import { workflowErrorCodes } from "./api/api-errors.ts";

export const workflows = capability({
  name: "workflows",
  declares: declaration,
  atEdges: workflowsAtEdges,
  needs: [storage, nodes, sandbox, scripts, runtime, tracing],
  create: ({ config, logger, storage: database, ...needed }) =>
    createWorkflows(config, database, needed, logger),
  operations: async () => (await import("./api/api.ts")).workflowOperations,
  errors: [{ title: "Workflows", errors: workflowErrors, codes: workflowErrorCodes }],
  bindings: (services) => ({
    workflow: {
      ...shown,
      handler: workflowBinding(services.workflows, services.workflowInstances),
    },
  }),
  metrics: async ({ workflowEngine, workflowInstances }) =>
    (await import("./metrics.ts")).workflowMetrics(workflowEngine.measures, () =>
      workflowInstances.countAllByStatus(),
    ),
  run: ({ workflowEngine }) => ({ giveBack: () => workflowEngine.giveBack(), stop: () => {} }),
  load: ({ workflowEngine }) => workflowEngine.start(),
  due: ({ workflowEngine }) => workflowEngine.due,
  expire: async ({ workflowEngine }) => ({ workflows: await workflowEngine.expire() }),
  reset: ({ workflowEngine }) => workflowEngine.reset(),
  close: ({ workflowEngine }) => workflowEngine.close(),
});
