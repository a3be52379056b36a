import { z } from "zod";
import type { Instances } from "../../products/workflows/instances.ts";
import { entryName } from "../../products/workflows/store/journal.ts";
import { encode } from "../../products/workflows/worker/codec.ts";
import type { Workflow } from "../../products/workflows/workflow.ts";
import type { WorkflowServices } from "../../products/workflows/workflow-services.ts";
import { routeWithBody, type ControlRequest, type ControlRoute } from "../control.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { givenDurationMs } from "../duration.ts";
import { TestFault } from "../test-fault.ts";
import { Introspection } from "./introspection.ts";
import { MockedWorkflows, ModificationSchema, StepSchema, type MockTarget } from "./mocked-workflows.ts";

/** The services whose workflows are under test. */
export interface TestedWorkflows extends WorkflowServices {
  /** The account that is used when a test names none. */
  accountId: () => string;
  /** Resolves once no work is in progress. */
  settle: () => Promise<void>;
  onFault: (this: void, error: unknown) => void;
}

const waitMsMax = 300_000;
const waitMsDefault = 5000;
const forwardsMax = 10_000;

/** Creates the mocks of workflows, and applies them to all invocations. */
export function mockedWorkflows(tested: TestedWorkflows): MockedWorkflows {
  const mocked = new MockedWorkflows(({ accountId, workflowName, instanceId }, { type, payload }) => {
    const workflow = tested.workflows.find(accountId, workflowName);
    if (workflow !== undefined)
      unawaited(
        tested.workflowInstances.sendEvent(workflow, instanceId, type, payload).catch(tested.onFault),
      );
  });
  const { underTest } = tested.workflowEngine;
  if (underTest !== undefined) underTest.hooks = mocked;
  return mocked;
}

/** The routes of workflows under test. */
export function workflowRoutes(tested: TestedWorkflows, mocked: MockedWorkflows): ControlRoute[] {
  const introspection = new Introspection(tested.workflowInstances);
  return [
    ...mockRoutes(tested, mocked, introspection),
    ...instanceRoutes(tested, introspection),
    ...disturbingRoutes(tested, mocked, introspection),
  ];
}

function mockRoutes(
  tested: TestedWorkflows,
  mocked: MockedWorkflows,
  introspection: Introspection,
): ControlRoute[] {
  return [
    {
      method: "POST",
      path: "/workflows/{workflow}/introspect",
      summary: "Starts recording the instances of a workflow",
      query: ["account", "instance"],
      handle: async (request) => mocked.watch(targetOf(request, workflowOf(request, tested))),
    },
    {
      method: "GET",
      path: "/workflows/{workflow}/instances",
      summary: "Lists the instances that have started since the recording began",
      query: ["account", "instance"],
      handle: async (request) => ({ ids: mocked.seen(targetOf(request, workflowOf(request, tested))) }),
    },
    routeWithBody({
      method: "POST",
      path: "/workflows/{workflow}/modify",
      summary: "Mocks steps, sleeps and events of all instances, or of one (?instance=)",
      query: ["account", "instance"],
      body: ModificationSchema,
      async handle(request, change) {
        const workflow = workflowOf(request, tested);
        const target = targetOf(request, workflow);
        mocked.modify(target, change);
        const { instanceId } = target;
        if (change.do !== "mockEvent" || instanceId === undefined) return;
        // A running instance took its mocked events at its start, so a new one is sent.
        if (!mocked.hasStarted({ ...target, instanceId })) return;
        const payload = encode(change.payload, "The payload of the mock");
        await tested.workflowInstances.sendEvent(workflow, instanceId, change.type, payload);
      },
    }),
    {
      method: "POST",
      path: "/workflows/{workflow}/dispose",
      summary: "Removes the mocks. Fails if one of them was not used by any step",
      query: ["account", "instance"],
      async handle(request) {
        const workflow = workflowOf(request, tested);
        const target = targetOf(request, workflow);
        const ids = target.instanceId === undefined ? mocked.seen(target) : [target.instanceId];
        const keys = await keysOf(ids, workflow, introspection);
        const unused = [...mocked.dispose(target)].filter((key) => !keys.has(key)).map(entryName);
        if (unused.length === 0) return;
        const steps = [...keys].map((key) => `"${entryName(key)}"`).join(", ") || "none";
        throw new TestFault(
          409,
          `No step used the mocks of ${unused.map((name) => `"${name}"`).join(", ")}. The steps were ${steps}`,
        );
      },
    },
  ];
}

const instancePath = "/workflows/{workflow}/instances/{instance}";

const instanceAt =
  (tested: TestedWorkflows) =>
  (request: ControlRequest): [Workflow, string] => [workflowOf(request, tested), request.params["instance"]!];

function instanceRoutes(tested: TestedWorkflows, introspection: Introspection): ControlRoute[] {
  const path = instancePath;
  const at = instanceAt(tested);
  return [
    {
      method: "GET",
      path,
      summary: "Waits for a status (?status=), or for the end, and shows the instance",
      query: ["account", "status", "wait"],
      async handle(request) {
        const status = request.query.get("status");
        return status === null
          ? introspection.untilEnd(...at(request), waitMsOf(request))
          : introspection.untilStatus(...at(request), status, waitMsOf(request));
      },
    },
    {
      method: "GET",
      path: `${path}/steps/{step}`,
      summary: "Waits for the result of a step, named with its count: charge-1",
      query: ["account", "wait"],
      handle: async (request) =>
        introspection.untilStep(...at(request), request.params["step"]!, waitMsOf(request)),
    },
    {
      method: "GET",
      path: `${path}/steps/{step}/attempts`,
      summary: "Lists the attempts of a step",
      query: ["account"],
      handle: async (request) => ({
        attempts: await introspection.attempts(...at(request), request.params["step"]!),
      }),
    },
    {
      method: "GET",
      path: `${path}/timeline`,
      summary: "Lists the steps, sleeps and waits of an instance",
      query: ["account"],
      handle: async (request) => ({ timeline: await introspection.timeline(...at(request)) }),
    },
  ];
}

function disturbingRoutes(
  tested: TestedWorkflows,
  mocked: MockedWorkflows,
  introspection: Introspection,
): ControlRoute[] {
  const path = instancePath;
  const at = instanceAt(tested);
  return [
    routeWithBody({
      method: "POST",
      path: `${path}/fast-forward`,
      summary: "Moves the time of one instance forward",
      query: ["account"],
      body: z.strictObject({ by: z.union([z.string().max(100), z.number().min(0)]) }),
      async handle(request, { by }) {
        await fastForward(tested, givenDurationMs(by), ...at(request));
      },
    }),
    routeWithBody({
      method: "POST",
      path: `${path}/crash`,
      summary: "Kills the process of the instance after this step has ended",
      query: ["account"],
      body: z.strictObject({ after: StepSchema }),
      async handle(request, { after }) {
        const [{ accountId, name }, instanceId] = at(request);
        mocked.crashAfter({ accountId, workflowName: name, instanceId }, after);
      },
    }),
    {
      method: "POST",
      path: `${path}/replay`,
      summary: "Replays the code of an ended instance with its journal",
      query: ["account"],
      handle: async (request) => introspection.replay(...at(request), tested.workflowEngine.underTest!),
    },
  ];
}

function workflowOf({ params, query }: ControlRequest, { workflows, accountId }: TestedWorkflows): Workflow {
  const name = params["workflow"]!;
  const found = workflows.find(query.get("account") ?? accountId(), name);
  if (found === undefined) throw new TestFault(404, `The account has no workflow with the name "${name}"`);
  return found;
}

const targetOf = ({ query }: ControlRequest, { accountId, name }: Workflow): MockTarget => ({
  accountId,
  workflowName: name,
  instanceId: query.get("instance") ?? undefined,
});

function waitMsOf({ query }: ControlRequest): number {
  const ms = Number(query.get("wait") ?? waitMsDefault);
  if (!(ms >= 0 && ms <= waitMsMax)) throw new TestFault(400, `Expected 0 to ${waitMsMax} ms for wait`);
  return ms;
}

async function keysOf(
  ids: readonly string[],
  workflow: Workflow,
  introspection: Introspection,
): Promise<Set<string>> {
  const keys = new Set<string>();
  for (const id of ids) {
    const row = await introspection.find(workflow, id);
    if (row !== undefined) for (const key of (await introspection.history(row)).entries.keys()) keys.add(key);
  }
  return keys;
}

/** Moves the time of one instance forward, from one due time to the next. Waits for all work before each move. */
async function fastForward(
  tested: TestedWorkflows,
  byMs: number,
  workflow: Workflow,
  id: string,
): Promise<void> {
  const instances: Instances = tested.workflowInstances;
  let left: number | undefined = byMs;
  for (let count = 0; left !== undefined && left > 0; count++) {
    if (count > forwardsMax) throw new TestFault(409, `More than ${forwardsMax} waits came due`);
    await tested.settle();
    const { rid } = await instances.get(workflow, id);
    left = await tested.workflowEngine.fastForward(rid, left);
  }
  await tested.settle();
}
