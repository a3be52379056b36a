import { METHODS, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AccessRecord, AccessView } from "../../platform/access-log/access-record.ts";
import { withoutSecrets } from "../../platform/access-log/redact.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import { carriesTrace, type Tracer } from "../../platform/tracing/spans/tracer.ts";

/** Begins a span for each request of the edge. */
export class RequestTraces {
  readonly #tracer: Tracer;
  readonly #trusts: (request: IncomingMessage) => boolean;

  /** `trusts` returns whether the sender of a request may choose the trace. */
  constructor(tracer: Tracer, trusts: (request: IncomingMessage) => boolean) {
    this.#tracer = tracer;
    this.#trusts = trusts;
  }

  /** Begins the span of a request. The caller ends it when the response, or the upgraded connection, has closed. */
  begin(request: IncomingMessage, record: AccessRecord | undefined): Span {
    const { method = "GET", headers } = request;
    const caller = carriesTrace(headers)
      ? this.#tracer.incoming(headers, () => this.#trusts(request))
      : undefined;
    const span = this.#tracer.begin(edgeNames.get(method) ?? otherName, "server", caller);
    if (record !== undefined) record.span = span;
    if (span.isSampled) span.set("http.request.method", method);
    return span;
  }

  /** Adds the zone and other properties that the edge has determined for a request. */
  sees(span: Span, request: IncomingMessage, ray: string, view: AccessView): void {
    if (!span.isSampled) return;
    const path = withoutSecrets(view.path);
    const question = path.indexOf("?");
    span
      .set("url.scheme", view.isTls ? "https" : "http")
      .set("url.path", question < 0 ? path : path.slice(0, question))
      .set("server.address", view.host)
      .set("client.address", view.clientAddress)
      .set("network.protocol.version", request.httpVersion)
      .set("user_agent.original", request.headers["user-agent"])
      .set("selvedge.ray", ray)
      .set("selvedge.zone", view.zone?.name);
    if (question >= 0) span.set("url.query", path.slice(question + 1));
  }

  /** Ends the span of a request whose response, or upgraded connection, has closed. */
  end(span: Span, answer: ServerResponse | Duplex): void {
    if (!span.isSampled) return;
    if ("statusCode" in answer) {
      if (answer.headersSent) {
        span.set("http.response.status_code", answer.statusCode);
        if (answer.statusCode >= 500) span.fail(String(answer.statusCode));
      } else span.fail(left);
    }
    span.end();
  }
}

/** The names of spans, by method. Visitors choose methods, so one that HTTP does not know has a common name. */
const edgeNames = new Map(METHODS.map((method) => [method, `edge ${method}`]));
const otherName = "edge _OTHER";

/** Status for visitors who disconnected before the head of a response was sent. */
const left = "client_closed";
