import { z } from "zod";
import type { Storage } from "../platform/storage/storage.ts";
import { givenDurationMs } from "./duration.ts";
import type { Mover } from "./advance.ts";
import { stepsMax } from "./advance.ts";
import type { TestFaults } from "./faults/faults.ts";
import { faultRoutes } from "./faults/routes.ts";
import type { TestedOutbound } from "./outbound/outbound.ts";
import { outboundRoutes } from "./outbound/routes.ts";
import { routeWithBody, type ControlRequest, type ControlRoute } from "./control.ts";
import { harOf } from "./har.ts";
import { knownOperation } from "./known-operation.ts";
import { cellRoutes, type KilledCells } from "./scripts/cell-routes.ts";
import { scriptRoutes, type DrivenScripts } from "./scripts/driven-scripts.ts";
import type { CallConditions, RecordedCalls } from "./journal.ts";
import { startName, type States } from "./states/states.ts";
import { canonicalState } from "./store.ts";
import type { MockedWorkflows } from "./workflows/mocked-workflows.ts";
import { workflowRoutes, type TestedWorkflows } from "./workflows/routes.ts";
import { shownTime, type MovableClock } from "./test-clock.ts";
import { TestFault } from "./test-fault.ts";

/** The parts that the routes control. */
export interface Controlled {
  storage: Storage;
  states: States;
  journal: RecordedCalls;
  faults: TestFaults;
  outbound: TestedOutbound;
  cells: KilledCells;
  workflows: TestedWorkflows;
  mocked: MockedWorkflows;
  scripts: DrivenScripts;
  clock: MovableClock;
  mover: Mover;
  seed: string;
  /** The ids of all operations. */
  operations: ReadonlySet<string>;
  /** The base URL of clients of the API. */
  apiUrl: () => string;
  onFault: (this: void, error: unknown) => void;
}

const NameSchema = z
  .string()
  .regex(/^[\w. -]{1,100}$/, "Expected a name of letters, digits, spaces, . _ and -");
const waitSecondsMax = 300;

/** The routes that tests call. */
export const controlRoutes = (controlled: Controlled): ControlRoute[] => [
  ...stateRoutes(controlled),
  ...snapshotRoutes(controlled),
  ...clockRoutes(controlled),
  ...faultRoutes(controlled.faults, controlled.operations),
  ...outboundRoutes(controlled.outbound),
  ...cellRoutes(controlled.cells),
  ...scriptRoutes(controlled.scripts),
  ...workflowRoutes(controlled.workflows, controlled.mocked),
  ...callRoutes(controlled),
];

function stateRoutes(controlled: Controlled): ControlRoute[] {
  const { states, storage, journal, faults, outbound, mocked, mover, seed } = controlled;
  return [
    {
      method: "GET",
      path: "",
      summary: "Shows the seed and the snapshots",
      handle: async () => ({ seed, snapshots: states.names }),
    },
    routeWithBody({
      method: "POST",
      path: "/reset",
      summary:
        "Restores the state of the start or of a snapshot, and clears faults, answers, mocks and the journal",
      body: z.strictObject({ to: NameSchema.optional() }),
      async handle(_request, { to = startName }) {
        faults.clear();
        outbound.clear();
        mocked.clear();
        await restore(controlled, to);
        journal.clear();
      },
    }),
    {
      method: "GET",
      path: "/state",
      summary: "Shows all rows, sorted, without times and secrets",
      query: ["tables"],
      async handle({ query }) {
        await mover.store();
        return canonicalState(storage.read, query.get("tables")?.split(","));
      },
    },
  ];
}

/** Restores a state with its time. A clock that skipped goes on to do so. */
async function restore({ states, mover, clock, onFault }: Controlled, name: string): Promise<void> {
  mover.end();
  try {
    await states.restore(name);
  } finally {
    if (clock.mode === "skip") mover.skip(onFault);
  }
}

function snapshotRoutes(controlled: Controlled): ControlRoute[] {
  const { states, mover } = controlled;
  const nameOf = ({ params }: ControlRequest): string => {
    const name = NameSchema.safeParse(params["name"]);
    if (!name.success) throw new TestFault(400, name.error.issues[0]!.message);
    return name.data;
  };
  return [
    {
      method: "GET",
      path: "/snapshots/{name}",
      summary: "Shows the time of a snapshot",
      handle: async (request) => states.timeOf(nameOf(request)),
    },
    {
      method: "GET",
      path: "/snapshots/{name}/file",
      summary: "Returns a snapshot as a file with which another platform can start (--test-state)",
      handle: async (request) => states.file(nameOf(request)),
    },
    {
      method: "PUT",
      path: "/snapshots/{name}",
      summary: "Saves the state as a snapshot with this name",
      async handle(request) {
        await mover.settle();
        await states.keep(nameOf(request));
      },
    },
    {
      method: "DELETE",
      path: "/snapshots/{name}",
      summary: "Removes a snapshot",
      handle: async (request) => states.remove(nameOf(request)),
    },
    {
      method: "POST",
      path: "/snapshots/{name}/restore",
      summary: "Restores a snapshot",
      handle: async (request) => restore(controlled, nameOf(request)),
    },
    {
      method: "GET",
      path: "/file",
      summary: "Returns the state as a file with which another platform can start (--test-state)",
      async handle() {
        await mover.settle();
        return states.file();
      },
    },
  ];
}

const ClockSchema = z.strictObject({
  mode: z.enum(["real", "frozen", "skip"]).optional(),
  now: z.iso.datetime({ offset: true }).optional(),
  advance: z.union([z.string().max(100), z.number().min(0)]).optional(),
  /** Moves to the next due work. */
  next: z.literal(true).optional(),
  settle: z.boolean().optional(),
  max: z.int().min(1).max(1_000_000).optional(),
});

function clockRoutes({ clock, mover, onFault }: Controlled): ControlRoute[] {
  const shown = () => shownTime(clock.save());
  return [
    { method: "GET", path: "/clock", summary: "Shows the time", handle: async () => shown() },
    routeWithBody({
      method: "PATCH",
      path: "/clock",
      summary: "Moves the clock, and runs the work that comes due on the way",
      body: ClockSchema,
      async handle(_request, { mode, now, advance, next, settle: settles = true, max = stepsMax }) {
        if ([now, advance, next].filter((each) => each !== undefined).length > 1)
          throw new TestFault(400, "Expected at most one of now, advance and next");
        if (mode !== undefined) clock.change(mode);
        mover.stop();
        try {
          if (next === true) return { ...shown(), fired: await mover.next() };
          const toMs =
            advance === undefined ? now && Date.parse(now) : clock.now() + givenDurationMs(advance);
          if (typeof toMs !== "number") return shown();
          const fired = await mover.to(toMs, { max, settles });
          return { ...shown(), fired };
        } finally {
          if (clock.mode === "skip") mover.skip(onFault);
        }
      },
    }),
  ];
}

/** The conditions on calls, in a query. */
const filters = ["operation", "method", "path", "token", "status", "after", "changed", "body"];

function callRoutes({ journal, operations, apiUrl }: Controlled): ControlRoute[] {
  return [
    {
      method: "GET",
      path: "/calls",
      summary: "Lists the calls that match; with ?wait= waits for the first one",
      query: [...filters, "wait"],
      async handle({ query }) {
        const waitSeconds = Number(query.get("wait") ?? 0);
        const filter = filterOf(query, operations);
        if (!(waitSeconds >= 0 && waitSeconds <= waitSecondsMax))
          throw new TestFault(400, `Expected 0 to ${waitSecondsMax} seconds for wait`);
        return {
          calls: waitSeconds > 0 ? await journal.waitFor(filter, waitSeconds * 1000) : journal.all(filter),
        };
      },
    },
    {
      method: "GET",
      path: "/calls/unknown",
      summary: "Lists the calls whose path belongs to no operation",
      handle: async () => ({ calls: journal.unknown() }),
    },
    {
      method: "GET",
      path: "/calls/har",
      summary: "Returns the calls as an HTTP Archive",
      query: filters,
      handle: async ({ query }) => harOf(journal.all(filterOf(query, operations)), apiUrl()),
    },
    {
      method: "GET",
      path: "/calls/events",
      summary: "Sends each later call as a server-sent event",
      async handle({ response }) {
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
        response.flushHeaders();
        const end = journal.follow((call) => response.write(`data: ${JSON.stringify(call)}\n\n`));
        response.once("close", end);
      },
    },
    {
      method: "DELETE",
      path: "/calls",
      summary: "Clears the list of calls",
      handle: async () => journal.clear(),
    },
  ];
}

function filterOf(query: URLSearchParams, operations: ReadonlySet<string>): CallConditions {
  const number = (name: string): number | undefined => {
    const value = query.get(name) ?? undefined;
    if (value !== undefined && !/^\d{1,15}$/.test(value))
      throw new TestFault(400, `Expected a number for ${name} but received ${JSON.stringify(value)}`);
    return value === undefined ? undefined : Number(value);
  };
  const text = (name: string): string | undefined => query.get(name) ?? undefined;
  const body = text("body");
  return {
    operation: knownOperation(operations, text("operation")),
    method: text("method"),
    path: text("path"),
    token: text("token"),
    status: number("status"),
    after: number("after"),
    changed: query.has("changed") ? query.get("changed") === "true" : undefined,
    body: body === undefined ? undefined : objectOf(body),
  };
}

function objectOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Refused below.
  }
  throw new TestFault(400, "Expected a JSON object for body");
}
