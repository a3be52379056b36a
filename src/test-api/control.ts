import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { z } from "zod";
import { ApiError, ApiErrors } from "../control/api/errors.ts";
import { validate } from "../control/api/validation.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import { TestFault } from "./test-fault.ts";

export const controlPath = "/_selvedge/test/v1";
const bodyBytesMax = 64 * 1024 * 1024;

/** A request of a test. */
export interface ControlRequest {
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** The bytes of the body. */
  bytes(): Promise<Buffer>;
  incoming: IncomingMessage;
  response: ServerResponse;
}

/** A route of the control surface. `handle` returns JSON or bytes; undefined if it has sent the answer itself. */
export interface ControlRoute {
  method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  /** With parameters in braces. */
  path: string;
  summary: string;
  /** The names of the parameters that the query may have. */
  query?: readonly string[];
  /** The schema of the JSON body; absent if the route has no body or reads it itself. */
  body?: z.ZodType;
  handle(request: ControlRequest, body?: unknown): Promise<ControlAnswer>;
}

type ControlAnswer = object | Uint8Array | undefined | void;

/** A route whose handler receives a parsed JSON body. */
export const routeWithBody = <Body extends z.ZodType>(
  route: Omit<ControlRoute, "body" | "handle"> & {
    body: Body;
    handle(request: ControlRequest, body: z.output<Body>): Promise<ControlAnswer>;
  },
): ControlRoute => ({
  ...route,
  handle: async (request, body) => route.handle(request, body as z.output<Body>),
});

interface BoundRoute extends ControlRoute {
  pattern: RegExp;
}

/** Answers the requests of tests. Requests need the secret in the ready file; API tokens are refused. */
export class ControlSurface {
  readonly #secret: Buffer;
  readonly #routes: BoundRoute[];
  readonly #logger: Logger;

  constructor(secret: string, routes: readonly ControlRoute[], logger: Logger) {
    this.#secret = Buffer.from(`Bearer ${secret}`);
    this.#logger = logger;
    this.#routes = routes.map((route) => ({
      ...route,
      pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`),
    }));
  }

  /** Answers requests below `controlPath`. Returns false for others, which the API answers. */
  readonly answer = (request: IncomingMessage, response: ServerResponse): boolean => {
    response.setHeader("selvedge-test", "on");
    const { url = "" } = request;
    if (url !== controlPath && !url.startsWith(`${controlPath}/`)) return false;
    unawaited(
      this.#perform(request, response).catch((error: unknown) => {
        const isPublic = error instanceof TestFault || error instanceof ApiError;
        if (!isPublic) this.#logger.error({ err: error }, "a request to the control surface of tests failed");
        const message = isPublic
          ? error.message
          : "An internal error occurred. See the server's log for details";
        if (!response.headersSent) send(response, isPublic ? error.status : 500, { error: message });
        else response.destroy();
      }),
    );
    return true;
  };

  async #perform(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const given = Buffer.from(request.headers.authorization ?? "");
    if (given.length !== this.#secret.length || !timingSafeEqual(given, this.#secret))
      throw new TestFault(401, "Expected the secret of the control surface, which is in the ready file");
    const url = new URL(request.url!, "http://control");
    const path = url.pathname.slice(controlPath.length);
    const matching = this.#routes.filter(({ pattern }) => pattern.test(path));
    if (matching.length === 0)
      throw new TestFault(404, `Expected a path of the control surface but received ${path}`);
    const route = matching.find(({ method }) => method === request.method);
    if (route === undefined)
      throw new TestFault(405, `Expected ${matching.map(({ method }) => method).join(" or ")} for ${path}`);
    const groups = route.pattern.exec(path)!.groups ?? {};
    const params = Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decoded(text)]));
    let read: Promise<Buffer> | undefined;
    const bytes = (): Promise<Buffer> => (read ??= bytesOf(request));
    refuseUnknown(url.searchParams, route);
    const body = route.body === undefined ? undefined : parsed(route.body, await bytes());
    const asked = { params, query: url.searchParams, bytes, incoming: request, response };
    const answer = await route.handle(asked, body);
    if (response.headersSent) return;
    if (answer instanceof Uint8Array)
      response.setHeader("content-type", "application/octet-stream").end(answer);
    else send(response, 200, answer ?? {});
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TestFault(400, "Expected valid percent-encoding in the path");
  }
}

function refuseUnknown(query: URLSearchParams, { query: known = [] }: ControlRoute): void {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TestFault(
      400,
      `Expected ${known.length === 0 ? "no parameters" : `some of ${known.join(", ")}`} but received ${unknown}`,
    );
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > bodyBytesMax) throw new TestFault(413, `Expected a body of at most ${bodyBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function parsed<S extends z.ZodType>(schema: S, bytes: Buffer): z.output<S> {
  let value: unknown;
  try {
    value = bytes.length === 0 ? {} : JSON.parse(bytes.toString());
  } catch {
    throw new TestFault(400, "Expected a JSON body");
  }
  try {
    return validate(schema, value, "body");
  } catch (error) {
    throw error instanceof ApiErrors ? new TestFault(400, error.errors[0]!.message) : error;
  }
}
