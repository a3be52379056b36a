import { startHosting, type Hosting } from "../runtime/platform.ts";

const finals = ["complete", "errored", "terminated"];

export interface WorkflowHosting extends Hosting {
  /**
   * Uploads a script whose class `Main` has this body of `run(event, step)`, and creates a workflow of it.
   */
  workflow(name: string, run: string): Promise<void>;
  /** The path of a workflow's instances, or of one. */
  instances(workflow: string, id?: string): string;
  create(workflow: string, id: string, params?: unknown): Promise<void>;
  status(workflow: string, id: string): Promise<{ status: string; output: unknown; error: unknown }>;
  /** Resolves once the instance has one of the statuses. */
  until(
    workflow: string,
    id: string,
    statuses: readonly string[],
  ): Promise<Awaited<ReturnType<WorkflowHosting["status"]>>>;
  end(workflow: string, id: string): Promise<Awaited<ReturnType<WorkflowHosting["status"]>>>;
  // oxlint-disable-next-line typescript/no-explicit-any
  details(workflow: string, id: string): Promise<any>;
}

/** A platform whose workflows wait and retry quickly. */
export async function startWorkflowHosting(
  settings: Parameters<typeof startHosting>[0] = {},
): Promise<WorkflowHosting> {
  const hosting = await startHosting({ workflowLingerMs: 50, workflowRetryDelayMs: 10, ...settings });
  const base = `/accounts/${hosting.account}/workflows`;
  const instances: WorkflowHosting["instances"] = (workflow, id) =>
    `${base}/${workflow}/instances${id === undefined ? "" : `/${id}`}`;
  const status: WorkflowHosting["status"] = async (workflow, id) =>
    (await hosting.call("GET", `${instances(workflow, id)}/status`)).body.result;
  const until: WorkflowHosting["until"] = async (workflow, id, statuses) => {
    for (;;) {
      const now = await status(workflow, id);
      if (statuses.includes(now.status)) return now;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return {
    ...hosting,
    instances,
    status,
    until,
    async workflow(name, run) {
      await hosting.deploy(
        name,
        `import { WorkflowEntrypoint } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";
export class Main extends WorkflowEntrypoint { async run(event, step) { ${run} } }
export default {};`,
      );
      const put = await hosting.call("PUT", `${base}/${name}`, { script_name: name, class_name: "Main" });
      if (!put.body.success) throw new Error(JSON.stringify(put.body.errors));
    },
    async create(workflow, id, params = {}) {
      const { body } = await hosting.call("POST", instances(workflow), { id, params });
      if (!body.success) throw new Error(JSON.stringify(body.errors));
    },
    end: async (workflow, id) => until(workflow, id, finals),
    details: async (workflow, id) =>
      (await hosting.call("GET", instances(workflow, id))).body.result as unknown,
  };
}
