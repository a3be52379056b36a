import type { IncomingMessage } from "node:http";
import { Hono, type Context } from "hono";
import type { Logger } from "pino";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Zones } from "../../zones/zones.ts";
import { afterBody } from "../../../platform/util/after-body.ts";
import { permissionGroups, type PermissionKey } from "../../access/permissions.ts";
import { isId, newUuid } from "../../../platform/util/ids.ts";
import { traceCalls } from "./call-trace.ts";
import type { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import { zoneErrors } from "../../zones/errors.ts";
import { absentProduct } from "./absent-products.ts";
import { authenticate, type Callers } from "./auth.ts";
import { readBody } from "../body.ts";
import { failure, PreparedJson, preparedSuccess, success, successPage, type Page } from "../envelope.ts";
import { apiErrorOf, apiErrors, ApiError, ApiErrors, callerError, type ErrorCodes } from "../errors.ts";
import type { Call, Operation } from "../operation.ts";
import { compressed } from "./compress.ts";
import { canonicalPath, comparePaths, routePattern } from "./paths.ts";
import { RateLimiter } from "./rate-limit.ts";
import type { SharedRates } from "../../../platform/storage/nodes/shared-rates.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { minSeqName, seqHeader, waitForChange, withSeq } from "./read-your-writes.ts";
import { validate } from "../validation.ts";
import { zoneErrorCodes } from "../../zones/api/api-errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** An operation, and the services of the capability that declares it. */
export interface BoundOperation {
  operation: Operation;
  services: object;
}

/** Checks of tests. */
export interface ApiChecks {
  /** Validates results against their schemas too. */
  validateResults?: boolean;
  /** Called with each result before it is sent. */
  onAnswer?: (operation: Operation, result: unknown, incoming: IncomingMessage) => void;
}

/** The services that find out who calls, and what the path names. */
interface ApiServices extends Callers {
  storage: Pick<Storage, "following">;
  accounts: Pick<Accounts, "find">;
  zones: Pick<Zones, "find">;
}

export interface ApiOptions extends ApiChecks {
  services: ApiServices;
  operations: readonly BoundOperation[];
  /** Path parameters whose values must be ids. */
  idParameters: ReadonlySet<string>;
  logger: Logger;
  /** Calls allowed for each caller in one window; 0 for no limit. */
  rateLimit: number;
  rateWindowSeconds: number;
  /** Shares the limit with other nodes. */
  sharedRates?: Pick<SharedRates, "share">;
  bodyBytesMax: number;
  /** Without it, calls are not traced. */
  tracer?: Tracer | undefined;
  /** Whether callers may choose the trace. */
  tracesTrustCallers?: boolean;
}

type Environment = { Bindings: { incoming: IncomingMessage } };

/** The management API: a route for each operation. Every other path gets a 404 in the envelope. */
export function createApi(options: ApiOptions): Hono<Environment> {
  const app = new Hono<Environment>({ getPath: (request) => canonicalPath(pathOf(request.url)) });
  const limiter = new RateLimiter(
    options.rateLimit,
    options.rateWindowSeconds * 1000,
    clock.now,
    options.sharedRates,
  );
  // A handler may call another domain, so the errors of every domain are known in each operation.
  const errorCodes: ErrorCodes = Object.assign(
    {},
    zoneErrorCodes,
    ...options.operations.map(({ operation }) => operation.errorCodes),
  );
  // The router takes the first match.
  const bound = options.operations.toSorted((a, b) => comparePaths(a.operation.path, b.operation.path));
  for (const { operation, services } of bound) {
    const answer = async (context: Context<Environment>): Promise<Response> => {
      const { incoming } = context.env;
      const clientIp = incoming.socket.remoteAddress ?? "";
      const call = {
        incoming,
        url: context.req.url,
        params: context.req.param(),
        requestId: newUuid(),
        clientIp,
      };
      try {
        return await perform(operation, services, call, options, limiter);
      } catch (error) {
        const known = apiErrorOf(error, errorCodes) ?? error;
        const refusal = answerFailure(known, operation, call, options.logger);
        withSeq(refusal, options.services.storage);
        // A client that is still sending would miss the response if the connection closed right after it.
        await new Promise<void>((resolve) => afterBody(incoming, resolve));
        if (!incoming.complete) refusal.headers.set("connection", "close");
        return refusal;
      }
    };
    const { tracer, tracesTrustCallers = false } = options;
    app.on(
      operation.method,
      routePattern(operation.path),
      traceCalls(operation, tracer, tracesTrustCallers, answer),
    );
  }
  app.all("*", (context) => {
    const path = pathOf(context.req.url);
    const product = absentProduct(canonicalPath(path));
    const error =
      product === undefined ? apiErrors.noRoute(context.req.method, path) : apiErrors.absentProduct(product);
    return failure(error, newUuid());
  });
  return app;
}

interface Incoming {
  incoming: IncomingMessage;
  url: string;
  params: Record<string, string>;
  requestId: string;
  clientIp: string;
}

async function perform(
  operation: Operation,
  services: object,
  incoming: Incoming,
  options: ApiOptions,
  limiter: RateLimiter,
): Promise<Response> {
  const { incoming: request } = incoming;
  const { storage } = options.services;
  // Before the caller is known, because its rights may be among the changes.
  if (request.headers[minSeqName] !== undefined) await waitForChange(request.headers, storage);
  const isOwn = operation.access.scope === "own";
  const actor = isOwn ? undefined : await authenticate(request.headers, incoming.clientIp, options.services);
  const waitSeconds = actor === undefined ? 0 : limiter.take(actor.userId ?? actor.id);
  if (waitSeconds > 0) throw apiErrors.rateLimited(waitSeconds);

  const call: Call<unknown, unknown, object> = {
    ...incoming,
    actor: actor!, // operations of scope "own" have none and check their callers themselves
    services,
    query: undefined,
    body: undefined,
    messages: [],
    ...locate(operation, incoming, options),
  };
  authorize(operation, call);
  if (operation.query !== undefined) call.query = validate(operation.query, queryOf(incoming.url), "query");
  call.body = await readBody(operation, request, options.bodyBytesMax);

  const result: unknown = await operation.handle(call as Call<never, never, never>);
  if (options.onAnswer !== undefined || options.validateResults === true)
    lookAt(operation, result instanceof PreparedJson ? result.value : result, request, options);
  if (operation.answer === "raw") return withSeq(await toReceive(result as Response, request), storage);
  const accepted = request.headers["accept-encoding"];
  const { body, headers } = await compressed(operation, textOf(operation, result, call), accepted);
  return new Response(body, {
    status: operation.status ?? 200,
    headers: {
      "content-type": "application/json",
      "x-request-id": call.requestId,
      ...seqHeader(storage),
      ...headers,
    },
  });
}

function lookAt(
  operation: Operation,
  result: unknown,
  request: IncomingMessage,
  { onAnswer, validateResults }: ApiOptions,
): void {
  onAnswer?.(operation, result, request);
  if (validateResults === true && operation.answer !== "raw") checkResult(operation, result);
}

/** The envelope of a result, as JSON. */
function textOf(
  { answer }: Operation,
  result: unknown,
  { messages, resultInfo }: Call<unknown, unknown, object>,
): string | Uint8Array<ArrayBuffer> {
  if (result instanceof PreparedJson) return preparedSuccess(result, messages);
  return JSON.stringify(
    answer === "page"
      ? successPage(result as Page<unknown>, messages)
      : success(result, messages, resultInfo),
  );
}

/**
 * The answer without its body, if the client will not receive it: Hono drops the body of an answer to HEAD without
 * a cancel, which would leave its file open.
 */
async function toReceive(answer: Response, { method, socket }: IncomingMessage): Promise<Response> {
  if (answer.body === null || (method !== "HEAD" && !socket.destroyed)) return answer;
  await answer.body.cancel();
  return new Response(null, answer);
}

/**
 * The zone and account that the path names. Throws 404 if they do not exist, so that handlers can rely on
 * them.
 */
function locate(
  operation: Operation,
  { url, params }: Incoming,
  { services, idParameters }: ApiOptions,
): Pick<Call<0, 0, object>, "zone" | "account"> {
  const malformed = Object.entries(params).some(([name, value]) => idParameters.has(name) && !isId(value));
  if (malformed) throw apiErrors.noRoute(operation.method, pathOf(url));
  const zoneId = params["zone_id"];
  const zone = zoneId === undefined ? undefined : services.zones.find(zoneId);
  if (zoneId !== undefined && zone === undefined) throw zoneErrors.notFound(zoneId);
  const accountId = zone?.accountId ?? params["account_id"];
  const account = accountId === undefined ? undefined : services.accounts.find(accountId);
  if (accountId !== undefined && account === undefined) {
    throw new ApiError(404, 1003, `No account has the id ${accountId}`);
  }
  // Only operations with these ids in their path use them.
  return { zone: zone!, account: account! };
}

function authorize(operation: Operation, call: Call<unknown, unknown, object>): void {
  const { access } = operation;
  const { actor } = call;
  if (access.scope === "caller" || access.scope === "own") return;
  if (access.scope === "user") {
    if (actor.userId !== null && actor.can(access.permission, { userId: actor.userId })) return;
    throw apiErrors.unauthorized(`"${permissionName(access.permission)}" on the user`);
  }
  const target =
    access.scope === "zone"
      ? { zoneId: call.zone.id, accountId: call.zone.accountId }
      : { accountId: call.account.id };
  if (!actor.can(access.permission, target)) {
    throw apiErrors.unauthorized(`"${permissionName(access.permission)}" on the ${access.scope}`);
  }
}

const permissionName = (key: PermissionKey): string =>
  permissionGroups.find((group) => group.key === key)?.name ?? key;

function answerFailure(
  error: unknown,
  operation: Operation,
  { incoming, requestId }: Incoming & { requestId: string },
  logger: Logger,
): Response {
  if (error instanceof ApiError || error instanceof ApiErrors) {
    if (error.cause !== undefined)
      logger.warn({ request_id: requestId, operation: operation.id, err: error.cause }, error.message);
    return failure(error, requestId);
  }
  const fault = callerError(error);
  const log = { request_id: requestId, operation: operation.id, err: error };
  // A failure after the client aborted its upload is not a fault of the server.
  if (incoming.destroyed && !incoming.complete) logger.info(log, "the client disconnected");
  else if (fault === undefined) logger.error(log, "an operation failed");
  else logger.warn(log, fault.message);
  return failure(fault ?? apiErrors.internal(requestId), requestId);
}

function checkResult(operation: Operation, result: unknown): void {
  const values = operation.answer === "page" ? (result as Page<unknown>).items : [result];
  for (const value of values) {
    const parsed = operation.result?.safeParse(value);
    if (parsed?.success === false)
      throw new Error(`the result of ${operation.id} does not match its schema`, { cause: parsed.error });
  }
}

/** Query parameters as an object. A repeated parameter becomes an array. */
function queryOf(url: string): Record<string, string | string[]> {
  const start = url.indexOf("?");
  const query: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  if (start < 0) return query;
  for (const [key, value] of new URLSearchParams(url.slice(start + 1))) {
    const before = query[key];
    query[key] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return query;
}

function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start < 0 ? "/" : url.slice(start, end < 0 ? undefined : end);
}
