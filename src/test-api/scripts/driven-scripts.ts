import { z } from "zod";
import type { QueueMessage } from "../../products/queues/queue.ts";
import { wireBatch } from "../../products/queues/delivery/delivery.ts";
import { CellError } from "../../sandbox/errors.ts";
import { newUuid } from "../../platform/util/ids.ts";
import { clock } from "../../platform/timers/clock.ts";
import { VisitorError } from "../../edge/http/errors.ts";
import { DomainError } from "../../platform/domain-error.ts";
import type { Runtime } from "../../workers/runtime/runtime.ts";
import { withoutVisitor } from "../../workers/runtime/run-root.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import type { DispatchNamespaces } from "../../workers/scripts/namespaces/namespaces.ts";
import type { ScriptOwner } from "../../workers/scripts/script.ts";
import type { LiveScript } from "../../workers/scripts/runtime-script.ts";
import type { RunContext } from "../../workers/runtime/run-context.ts";
import { routeWithBody, type ControlRequest, type ControlRoute } from "../control.ts";
import { TestFault } from "../test-fault.ts";

/** The services that run scripts. */
export interface DrivenScripts {
  scripts: Scripts;
  /** Dispatch namespaces. */
  namespaces: DispatchNamespaces;
  runtime: Runtime;
  /** The account that is used when a test names none. */
  accountId: () => string;
}

const ScheduledSchema = z.strictObject({
  cron: z.string().max(100).default(""),
  at: z.iso.datetime({ offset: true }).optional(),
});

const BatchSchema = z.strictObject({
  queue: z.string().max(100),
  messages: z
    .array(
      z.strictObject({
        id: z.string().max(100).optional(),
        timestamp: z.iso.datetime({ offset: true }).optional(),
        attempts: z.int().min(1).max(1000).default(1),
        body: z.unknown(),
      }),
    )
    .max(100),
});

/** A request to a script, in the header of the call. */
const FetchSchema = z.strictObject({
  url: z.url().max(16_384),
  method: z.string().max(32),
  headers: z.array(z.tuple([z.string().max(200), z.string().max(16_384)])).max(200),
});

/** The parameters that say where the script is. */
const places = ["account", "namespace"];

/** The routes that run scripts directly. */
export const scriptRoutes = (driven: DrivenScripts): ControlRoute[] => [
  {
    method: "POST",
    path: "/scripts/{script}/fetch",
    summary: "Sends a request to a script; x-selvedge-request has URL, method and headers in JSON, base64url",
    query: places,
    handle: async (request) => fetchScript(request, driven),
  },
  routeWithBody({
    method: "POST",
    path: "/scripts/{script}/scheduled",
    summary: "Runs the scheduled handler of a script",
    query: places,
    body: ScheduledSchema,
    async handle(request, { cron, at }) {
      const scheduledTime = at === undefined ? clock.now() : Date.parse(at);
      return invoke(request, driven, "scheduled", JSON.stringify({ cron, scheduledTime }));
    },
  }),
  routeWithBody({
    method: "POST",
    path: "/scripts/{script}/queue",
    summary: "Runs the queue handler of a script with a batch of messages",
    query: places,
    body: BatchSchema,
    async handle(request, { queue, messages }) {
      const sent = messages.map(({ id = newUuid(), timestamp, attempts, body }, number): QueueMessage => ({
        number,
        id,
        sentOn: timestamp === undefined ? clock.now() : Date.parse(timestamp),
        attempts,
        contentType: "json",
        body: Buffer.from(JSON.stringify(body ?? null)),
      }));
      const backlog = { count: sent.length, bytes: 0, oldestOn: sent[0]?.sentOn ?? 0 };
      return invoke(request, driven, "queue", JSON.stringify(wireBatch(queue, sent, backlog)));
    },
  }),
];

interface Outcome {
  outcome: "ok" | "exception";
  error?: { name: string; message: string };
}

/** Runs the handler of an event. The outcome has the script's error. */
async function invoke(
  request: ControlRequest,
  driven: DrivenScripts,
  event: string,
  body: string,
): Promise<Outcome & object> {
  const { owner, live } = liveScript(request, driven);
  try {
    const answer = await driven.runtime.invoke(owner, live, event, body);
    const { error, ...rest } = (answer ?? {}) as { error?: Outcome["error"] };
    return error === undefined ? { outcome: "ok", ...rest } : { outcome: "exception", error, ...rest };
  } catch (error) {
    if (!(error instanceof CellError)) throw error;
    const { name: kind, message } = error.cause instanceof Error ? error.cause : error;
    return { outcome: "exception", error: { name: kind, message } };
  }
}

async function fetchScript(request: ControlRequest, driven: DrivenScripts): Promise<undefined> {
  const { owner, name } = liveScript(request, driven);
  const { incoming, response } = request;
  const { url, method, headers } = fetchOf(String(incoming.headers["x-selvedge-request"] ?? ""));
  const hasBody = incoming.headers["content-length"] !== "0";
  incoming.method = method;
  incoming.rawHeaders = headers.flat();
  if (!hasBody) {
    delete incoming.headers["content-length"];
    delete incoming.headers["transfer-encoding"];
  }
  try {
    const context = await contextOf(driven.runtime, owner, name);
    const target = { context, entrypoint: undefined, params: undefined, seesCf: false };
    response.setHeader("selvedge-script", "answers");
    await driven.runtime.runNested(target, { url: new URL(url), request: incoming, response });
  } catch (error) {
    response.removeHeader("selvedge-script");
    if (error instanceof CellError || error instanceof VisitorError || error instanceof DomainError)
      throw new TestFault(502, `The script ${name} did not answer: ${error.message}`);
    throw error;
  }
  return undefined;
}

function fetchOf(text: string): z.output<typeof FetchSchema> {
  try {
    return FetchSchema.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    throw new TestFault(400, "Expected url, method and headers in JSON and base64url for x-selvedge-request");
  }
}

/** The script that a request names. Throws a TestFault if it is not deployed. */
function liveScript(
  { params, query }: ControlRequest,
  { accountId, namespaces, scripts }: DrivenScripts,
): { owner: ScriptOwner; name: string; live: LiveScript } {
  const name = params["script"]!;
  const owner: ScriptOwner = { accountId: query.get("account") ?? accountId() };
  const dispatched = query.get("namespace");
  if (dispatched !== null) {
    const namespace = namespaces.find(owner.accountId, dispatched);
    if (namespace === undefined)
      throw new TestFault(404, `The account has no dispatch namespace with the name "${dispatched}"`);
    owner.namespace = namespace;
  }
  const live = scripts.live(owner, name);
  const place = dispatched === null ? "account" : `dispatch namespace "${dispatched}"`;
  if (live === undefined)
    throw new TestFault(404, `The ${place} has no deployed script with the name "${name}"`);
  return { owner, name, live };
}

const contextOf = async (runtime: Runtime, owner: ScriptOwner, name: string): Promise<RunContext> =>
  owner.namespace === undefined
    ? runtime.accountScript(owner.accountId, name, withoutVisitor(), 0)
    : runtime.customerScript(owner.accountId, owner.namespace.name, name, {
        ...{ root: withoutVisitor(), depth: 0 },
        ...{ limits: undefined, outbound: undefined, versionId: undefined },
      });
