import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import type { KeptSpan } from "../../platform/tracing/spans/span.ts";
import { Tracer } from "../../platform/tracing/spans/tracer.ts";
import { RequestTraces } from "./request-traces.ts";

it("names spans by the methods of HTTP, and all others alike", () => {
  const ended: KeptSpan[] = [];
  const sink = { add: (span: KeptSpan) => void ended.push(span), attribute: () => "" };
  const traces = new RequestTraces(new Tracer(sink, { followsParent: true, ratio: 1 }), () => false);
  for (const method of ["GET", "PROPFIND", "BREW", "constructor"]) {
    const span = traces.begin({ method, headers: {} } as IncomingMessage, undefined);
    traces.end(span, { statusCode: 200, headersSent: true } as ServerResponse);
  }
  expect(ended.map(({ name }) => name)).toEqual(["edge GET", "edge PROPFIND", "edge _OTHER", "edge _OTHER"]);
});
