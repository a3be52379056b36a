import type { IncomingMessage } from "node:http";
import { forSpan } from "../../../platform/tracing/spans/current.ts";
import type { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import type { Operation } from "../operation.ts";

interface CallContext {
  env: { incoming: IncomingMessage };
}

/** Wraps an operation's handler in spans named by its method and route. Without a tracer, returns the handler unchanged. */
export function traceCalls<C extends CallContext>(
  operation: Operation,
  tracer: Tracer | undefined,
  isTrusted: boolean,
  answer: (context: C) => Promise<Response>,
): (context: C) => Promise<Response> {
  if (tracer === undefined) return answer;
  const { id, method, path } = operation;
  return async (context) => {
    const { incoming } = context.env;
    const caller = tracer.incoming(incoming.headers, () => isTrusted);
    const span = tracer.begin(`API ${method} ${path}`, "server", caller);
    if (!span.isSampled) return answer(context);
    try {
      const response = await forSpan(span, () => answer(context));
      span.set("http.response.status_code", response.status);
      if (response.status >= 500) span.fail(String(response.status));
      return response;
    } finally {
      span
        .set("http.request.method", method)
        .set("http.route", path)
        .set("url.path", incoming.url?.split("?", 1)[0])
        .set("client.address", incoming.socket.remoteAddress)
        .set("user_agent.original", incoming.headers["user-agent"])
        .set("selvedge.operation", id)
        .end();
    }
  };
}
