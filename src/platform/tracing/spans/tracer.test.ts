import { expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import type { KeptSpan } from "./span.ts";
import { readTraceContext } from "./trace-context.ts";
import { withTrace } from "./trace-headers.ts";
import { traceHeader, Tracer, type Sampling } from "./tracer.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const parent = `00-${traceId}-${spanId}-01`;

function tracerWith(sampling: Sampling): { tracer: Tracer; ended: KeptSpan[] } {
  const ended: KeptSpan[] = [];
  const tracer = new Tracer({ add: (span) => ended.push(span), attribute: () => "" }, sampling);
  tracer.signWith("key of the nodes");
  return { tracer, ended };
}
const all: Sampling = { followsParent: true, ratio: 1 };
const none: Sampling = { followsParent: true, ratio: 0 };

it.each([
  [parent, true],
  [`00-${traceId}-${spanId}-00`, false],
  [`00-${traceId}-${spanId}-03`, true],
  [`00-${traceId}-${spanId}-fe`, false],
  [`01-${traceId}-${spanId}-01`, true],
  [`cc-${traceId}-${spanId}-01-what-the-future-holds`, true],
])("reads %s", (text, isSampled) => {
  expect(readTraceContext(text, "a=1")).toEqual({ traceId, spanId, isSampled, state: "a=1" });
});

it.each([
  "",
  `00-${traceId}-${spanId}-01-more`,
  `00-${traceId}-${spanId}-01-`,
  `00-${traceId}-${spanId}-1`,
  `00-${traceId}-${spanId}-0A`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${"0".repeat(32)}-${spanId}-01`,
  `00-${traceId}-${"0".repeat(16)}-01`,
  `ff-${traceId}-${spanId}-01`,
  `cc-${traceId}-${spanId}-01.more`,
  ` ${parent}`,
  `${parent}, ${parent}`,
  `${parent}\n`,
  `cc-${traceId}-${spanId}-01-${"x".repeat(300)}`,
])("refuses %j", (text) => {
  expect(readTraceContext(text, undefined)).toBeUndefined();
});

it("takes only two ids and a flag out of a hostile header", () => {
  const hostile = fc.oneof(
    fc.string({ unit: "binary", maxLength: 100 }),
    // Near misses: a valid header in which some characters are changed, added or left out.
    fc
      .array(fc.tuple(fc.nat(60), fc.string({ unit: "binary", maxLength: 3 }), fc.nat(2)), { maxLength: 4 })
      .map((changes) =>
        changes.reduce((text, [at, more, cut]) => text.slice(0, at) + more + text.slice(at + cut), parent),
      ),
  );
  fc.assert(
    fc.property(hostile, fc.string({ unit: "binary", maxLength: 200 }), (text, state) => {
      const context = readTraceContext(text, state);
      if (context === undefined) return;
      expect(context.traceId).toMatch(/^[\da-f]{32}$/);
      expect(context.spanId).toMatch(/^[\da-f]{16}$/);
      expect(context.traceId).not.toBe("0".repeat(32));
      expect(context.spanId).not.toBe("0".repeat(16));
      expect(context.state ?? "").toMatch(/^[\t\x20-\x7e]*$/);
      const { tracer } = tracerWith(all);
      const { traceId: kept } = tracer.begin("a", "server", { context, isTrusted: true });
      expect(kept).toBe(context.traceId);
      expect(tracer.begin("a", "server", { context, isTrusted: false }).traceId).not.toBe(kept);
    }),
    { numRuns: 3000 },
  );
});

it("continues the trace of a trusted caller, and follows its decision", () => {
  const { tracer, ended } = tracerWith(none);
  const headers = { traceparent: parent, tracestate: "vendor=1,other=2" };
  const span = tracer.begin(
    "edge GET",
    "server",
    tracer.incoming(headers, () => true),
  );
  span.child("origin").end();
  span.end();
  expect(ended.map((each) => [each.name, each.traceId, each.parent?.hex, each.state])).toEqual([
    ["origin", traceId, span.spanId, "vendor=1,other=2"],
    ["edge GET", traceId, spanId, "vendor=1,other=2"],
  ]);
  const unsampled = { traceparent: `00-${traceId}-${spanId}-00` };
  const { tracer: other, ended: kept } = tracerWith(all);
  other
    .begin(
      "edge GET",
      "server",
      other.incoming(unsampled, () => true),
    )
    .end();
  expect(kept).toEqual([]);
});

it("begins a new trace for an untrusted sender, with a link to that sender's trace", () => {
  const { tracer, ended } = tracerWith(all);
  const headers = { traceparent: parent, tracestate: "vendor=1" };
  const span = tracer.begin(
    "edge GET",
    "server",
    tracer.incoming(headers, () => false),
  );
  span.end();
  expect(span.traceId).not.toBe(traceId);
  expect(ended[0]).toMatchObject({ parent: undefined, state: undefined, link: { traceId, spanId } });
});

it("keeps the same traces on all nodes, and about as many as the ratio says", () => {
  const { tracer, ended } = tracerWith({ followsParent: true, ratio: 0.1 });
  const { tracer: node } = tracerWith({ followsParent: false, ratio: 0.1 });
  for (let i = 0; i < 5000; i++) {
    const span = tracer.begin("a", "server");
    span.end();
    const again = node.begin("b", "server", { context: span, isTrusted: true });
    expect(again.isSampled).toBe(span.isSampled);
  }
  expect(ended.length).toBeGreaterThan(350);
  expect(ended.length).toBeLessThan(650);
});

it("takes a signed context from other parts of the platform, and no forged one", () => {
  const { tracer } = tracerWith(all);
  const span = tracer.begin("edge GET", "server");
  const signed = tracer.signed(span);
  const read = (text: string) => tracer.incoming({ [traceHeader]: text }, () => false);
  expect(read(signed)).toMatchObject({ isTrusted: true, context: { spanId: span.spanId } });
  const stranger = tracerWith(all).tracer;
  stranger.signWith("another key");
  for (const forged of [stranger.signed(span), parent, `${parent}.`, "", signed.slice(1), `${signed}a`])
    expect(read(forged)).toEqual({ context: undefined, isTrusted: false });
  fc.assert(
    fc.property(
      fc.nat(signed.length - 1),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      (at, by) => {
        const forged = signed.slice(0, at) + by + signed.slice(at + 1);
        if (forged !== signed) expect(read(forged).isTrusted).toBe(false);
      },
    ),
  );
});

it("replaces the headers of a trace, except those of a trace that an account's code began", () => {
  const { tracer } = tracerWith(all);
  const span = tracer.begin("fetch GET", "client");
  const given = [
    "host",
    "a",
    "TraceParent",
    parent,
    "TRACESTATE",
    "x=1",
    traceHeader.toUpperCase(),
    "forged",
  ];
  expect(withTrace(given, span)).toEqual(["host", "a", "traceparent", span.header]);
  const kept = withTrace(given, span, { tracer, keepsForeign: true });
  expect(kept).toEqual([
    "host",
    "a",
    "TraceParent",
    parent,
    "TRACESTATE",
    "x=1",
    traceHeader,
    tracer.signed(span),
  ]);
  const own = ["host", "a", "traceparent", `00-${span.traceId}-${spanId}-01`];
  expect(withTrace(own, span, { keepsForeign: true })).toEqual(["host", "a", "traceparent", span.header]);
});
