import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { whileAnswering } from "../observability/last-net.ts";
import { asciiJson } from "../util/ascii-json.ts";
import { unawaited } from "../util/uncaught.ts";
import { callHeader, FailedCall, failureHeader, headBytesMax, type CallHead } from "./call-messages.ts";
import type { CallTransport } from "./transport.ts";
import type { CallExchange, UpgradedCall } from "./calls.ts";

export type CallHandler<Details> = (details: Details, exchange: CallExchange) => Promise<void>;
export type CallUpgradeHandler<Details> = (details: Details, exchange: UpgradedCall) => Promise<void>;

/** The handlers of a process for the calls of others. */
export interface CallAnswers {
  serve<Details>(
    name: string,
    answer: CallHandler<Details>,
    answerUpgrade?: CallUpgradeHandler<Details>,
  ): void;
  listen(path: string, onFault: (error: unknown, name: string) => void): Promise<void>;
  close(): void;
}

/** Creates a server of calls, which does not listen yet. */
export function answersOf(transport: CallTransport): CallAnswers {
  const handlers = new Map<string, CallHandler<never>>();
  const upgradeHandlers = new Map<string, CallUpgradeHandler<never>>();
  let noteFault: (error: unknown, name: string) => void = () => {};
  const server = createServer({
    maxHeaderSize: headBytesMax,
    requireHostHeader: false,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.setTimeout(0);
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    let mark = "";
    const fail = (): void => answerFailure(request, response, mark);
    whileAnswering(response, fail, () => {
      const { name, details, url, ...head } = takeHead(request);
      mark = head.mark;
      const exchange = { url: new URL(url), request, response };
      const answered = (async () => handlerOf(handlers, name)(details as never, exchange))();
      unawaited(
        answered.catch((error: unknown) => {
          if (!(error instanceof FailedCall) && !response.destroyed) noteFault(error, name);
          answerFailure(request, response, mark, error);
        }),
      );
    });
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const fail = (): void => {
      socket.destroy();
    };
    whileAnswering(socket, fail, () => {
      const { name, details, url } = takeHead(request);
      const exchange = { url: new URL(url), request, socket, head };
      const answered = (async () => handlerOf(upgradeHandlers, name)(details as never, exchange))();
      unawaited(
        answered.catch((error: unknown) => {
          noteFault(error, name);
          socket.destroy();
        }),
      );
    });
  });
  return {
    serve(name, answer, answerUpgrade) {
      handlers.set(name, answer);
      if (answerUpgrade !== undefined) upgradeHandlers.set(name, answerUpgrade);
    },
    async listen(path, onFault) {
      noteFault = onFault;
      await transport.listen(server, path);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function handlerOf<Handler>(handlers: ReadonlyMap<string, Handler>, name: string): Handler {
  const handler = handlers.get(name);
  if (handler === undefined) throw new Error(`Expected a process that answers calls of ${name}`);
  return handler;
}

/** Replaces the headers of the request with those of the request that the call is about. */
function takeHead(request: IncomingMessage): CallHead {
  const head = JSON.parse(String(request.headers[callHeader])) as CallHead;
  request.rawHeaders = [...head.headers];
  request.headers = headersOf(head.headers);
  return head;
}

/** Joins repeated headers as Node does. */
function headersOf(raw: readonly string[]): IncomingHttpHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!.toLowerCase();
    const value = raw[at + 1]!;
    const known = headers[name];
    if (name === "set-cookie") headers[name] = [...((known as string[] | undefined) ?? []), value];
    else
      headers[name] =
        known === undefined ? value : `${known as string}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return headers;
}

function answerFailure(
  request: IncomingMessage,
  response: ServerResponse,
  mark: string,
  error?: unknown,
): void {
  request.resume();
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const details = error instanceof FailedCall ? error.details : undefined;
  response
    .writeHead(500, [failureHeader, `${mark} ${asciiJson(details ?? {})}`, "content-length", "0"])
    .end();
}
