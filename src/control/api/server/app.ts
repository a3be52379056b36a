import type { IncomingMessage } from "node:http";
import { Hono, type Context } from "hono";
import type { Logger } from "pino";
import type { Actor } from "../../access/actor.ts";
import type { Accounts } from "../../accounts/accounts.ts";
import type { Audit } from "../../audit/audit.ts";
import { isAudited } from "../../audit/describe.ts";
import type { AuditedCall } from "../../audit/entry.ts";
import { beforeReader, type ReadBefore } from "../../audit/before.ts";
import type { Zones } from "../../zones/zones.ts";
import { afterBody } from "../../../platform/listen/after-body.ts";
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
import { noApiHooks, type ApiHooks, type SeenCall } from "./hooks.ts";
import { canonicalPath, orderOfPath, routePattern } from "./paths.ts";
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
  onResult?: (operation: Operation, result: unknown, incoming: IncomingMessage) => void;
  /** Turns the audit log off, to measure its cost. */
  withoutAudit?: boolean;
}

/** The services that identify the caller, and the zone and account in the path. */
interface ApiServices extends Callers {
  storage: Pick<Storage, "following">;
  accounts: Pick<Accounts, "find">;
  zones: Pick<Zones, "find">;
  audit: Pick<Audit, "perform" | "noteRefusal">;
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
  hooks?: ApiHooks | undefined;
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
  const { hooks = noApiHooks() } = options;
  hooks.forgetRates = () => limiter.forget();
  // A handler may call another domain, so the errors of every domain are known in each operation.
  const errorCodes: ErrorCodes = Object.assign(
    {},
    zoneErrorCodes,
    ...options.operations.map(({ operation }) => operation.errorCodes),
  );
  // The router takes the first match.
  const bound = options.operations
    .map((each) => ({ each, order: orderOfPath(each.operation.path) }))
    .toSorted((a, b) => (a.order < b.order ? -1 : Number(a.order > b.order)))
    .map(({ each }) => each);
  const readBefore = beforeReader(bound);
  for (const { operation, services } of bound) {
    const answer = async (context: Context<Environment>): Promise<Response> => {
      const { incoming } = context.env;
      const clientIp = incoming.socket.remoteAddress ?? "";
      const call: Incoming = {
        actor: undefined,
        incoming,
        url: context.req.url,
        params: context.req.param(),
        requestId: newUuid(),
        clientIp,
      };
      const performed = async (): Promise<Response> => {
        try {
          return await perform({ operation, services, readBefore, limiter }, call, options);
        } catch (error) {
          return respondWithError(apiErrorOf(error, errorCodes) ?? error, operation, call, options);
        }
      };
      return hooks.around === undefined ? performed() : hooks.around(seenOf(call, operation), performed);
    };
    const { tracer, tracesTrustCallers = false } = options;
    app.on(
      operation.method,
      routePattern(operation.path),
      traceCalls(operation, tracer, tracesTrustCallers, answer),
    );
  }
  app.all("*", async ({ req: { url, method }, env: { incoming } }) => {
    const answer = async (): Promise<Response> => answerUnknown(method, pathOf(url));
    return hooks.around === undefined
      ? answer()
      : hooks.around(seenOf({ incoming, url, params: {} }, undefined), answer);
  });
  return app;
}

async function respondWithError(
  error: unknown,
  operation: Operation,
  call: Incoming,
  options: ApiOptions,
): Promise<Response> {
  const { incoming } = call;
  const refusal = answerFailure(error, operation, call, options.logger);
  if (refusal.status === 401 || refusal.status === 403) noteRefusal(operation, call, refusal.status, options);
  withSeq(refusal, options.services.storage);
  // A client that is still sending would miss the response if the connection closed right after it.
  await new Promise<void>((resolve) => afterBody(incoming, resolve));
  if (!incoming.complete) refusal.headers.set("connection", "close");
  return refusal;
}

function answerUnknown(method: string, path: string): Response {
  const product = absentProduct(canonicalPath(path));
  const error = product === undefined ? apiErrors.noRoute(method, path) : apiErrors.absentProduct(product);
  return failure(error, newUuid());
}

const seenOf = (
  call: Pick<Incoming, "incoming" | "url" | "params"> & { seen?: SeenCall },
  operation: Operation | undefined,
): SeenCall =>
  (call.seen = {
    operation,
    incoming: call.incoming,
    url: call.url,
    params: call.params,
    actor: undefined,
    body: undefined,
  });

interface Incoming {
  /** Undefined until it is known. */
  actor: Actor | undefined;
  incoming: IncomingMessage;
  url: string;
  params: Record<string, string>;
  requestId: string;
  clientIp: string;
  /** For the test kit. */
  seen?: SeenCall;
}

interface Route extends BoundOperation {
  readBefore: ReadBefore;
  limiter: RateLimiter;
}

async function perform(
  { operation, services, readBefore, limiter }: Route,
  incoming: Incoming,
  options: ApiOptions,
): Promise<Response> {
  const { incoming: request } = incoming;
  const { storage } = options.services;
  // Before the caller is known, because its rights may be among the changes.
  if (request.headers[minSeqName] !== undefined) await waitForChange(request.headers, storage);
  const isOwn = operation.access.scope === "own";
  const actor = isOwn ? undefined : await authenticate(request.headers, incoming.clientIp, options.services);
  incoming.actor = actor;
  const { seen } = incoming;
  if (seen !== undefined) seen.actor = actor;
  const waitSeconds = actor === undefined ? 0 : limiter.take(actor.userId ?? actor.id);
  if (waitSeconds > 0) throw apiErrors.rateLimited(waitSeconds);

  const call: Call<unknown, unknown, object> & AuditedCall = {
    ...incoming,
    actor: actor!, // operations of scope "own" have none and check their callers themselves
    services,
    query: undefined,
    body: undefined,
    messages: [],
    ...locate(operation, incoming, options),
  };
  authorize(operation, call);
  refuseUnknownCondition(operation, request);
  if (operation.query !== undefined) call.query = validate(operation.query, queryOf(incoming.url), "query");
  call.body = await readBody(operation, request, options.bodyBytesMax);
  if (seen !== undefined) {
    seen.body = call.body;
    await options.hooks?.read?.(seen);
  }

  const result: unknown = await options.services.audit.perform(
    operation,
    call,
    { before: () => readBefore(operation, call), statusOf: (error) => statusOf(error, operation) },
    () => operation.handle(call as Call<never, never, never>),
  );
  if (options.onResult !== undefined || options.validateResults === true)
    lookAt(operation, result instanceof PreparedJson ? result.value : result, call, options);
  if (operation.answer === "raw") return withSeq(await toReceive(result as Response, request), storage);
  const accepted = request.headers["accept-encoding"];
  const { body, headers } = await compressed(operation, textOf(operation, result, call), accepted);
  return new Response(body, {
    status: operation.status ?? 200,
    headers: {
      "content-type": "application/json",
      "x-request-id": call.requestId,
      ...seqHeader(storage),
      ...(call.etag === undefined ? {} : { etag: `"${call.etag}"` }),
      ...headers,
    },
  });
}

/** A condition that is not checked would be ignored in silence. */
function refuseUnknownCondition(
  { method, takesIfMatch }: Operation,
  { headers: { "if-match": condition = "*" } }: IncomingMessage,
): void {
  if (method !== "GET" && takesIfMatch !== true && condition.trim() !== "*")
    throw apiErrors.conditionUnknown();
}

function lookAt(
  operation: Operation,
  result: unknown,
  call: AuditedCall,
  { onResult, validateResults }: ApiOptions,
): void {
  onResult?.(operation, result, call.incoming);
  if (validateResults === true && isAudited(operation, call) && call.isAudited !== true)
    throw new Error(`a call of ${operation.id} left no entry in the audit log`);
  if (validateResults === true && operation.before !== undefined && call.before === undefined)
    throw new Error(`a call of ${operation.id} did not tell the audit log the resource before it`);
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

function statusOf(error: unknown, { errorCodes }: Operation): number {
  const known = callerError(error, errorCodes);
  return (known instanceof ApiErrors ? known.errors[0]?.status : known?.status) ?? 500;
}

const accountScope = (account: Call<0, 0, object>["account"] | undefined) =>
  account === undefined ? {} : { account };

/** Logs a refused call in the audit log, with the account that it named. */
function noteRefusal(
  operation: Operation,
  incoming: Incoming,
  status: number,
  { services, idParameters, ...rest }: ApiOptions,
): void {
  let scope: Partial<Pick<Call<0, 0, object>, "zone" | "account">> = {};
  try {
    scope = locate(operation, incoming, { services, idParameters, ...rest });
  } catch {
    // The path names nothing that exists.
  }
  const { actor } = incoming;
  // A caller of another account is logged in its own account, not in the account that it tried to reach.
  if (actor !== undefined && scope.account !== undefined && !actor.belongsTo(scope.account.id))
    scope = accountScope(services.accounts.find(actor.ownerId));
  services.audit.noteRefusal(
    operation,
    { account: undefined, zone: undefined, ...incoming, ...scope },
    status,
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
  { incoming, requestId }: Incoming,
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
