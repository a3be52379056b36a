import { expect, it } from "vitest";
import { spansOf } from "../../../../test/helpers/collector.ts";
import { fc } from "../../../../test/helpers/properties.ts";
import { batchMax, SpanBatch } from "../span-batches.ts";
import { idOf } from "../spans/ids.ts";
import { KeptSpan, type AttributeValue, type SpanKind } from "../spans/span.ts";
import type { SpanEncoding } from "./encoding.ts";
import { jsonEncoding } from "./json.ts";
import { protobufEncoding } from "./protobuf.ts";

const resource: [string, string][] = [
  ["service.name", "selvedge"],
  ["place", "Zürich"],
];
const encodings = [jsonEncoding(resource, "1.2.3"), protobufEncoding(resource, "1.2.3")];
const originMs = 1_793_491_200_000.25;

interface Given {
  name: string;
  kind: SpanKind;
  parent: string | undefined;
  state: string | undefined;
  attributes: [string, AttributeValue][];
  link: boolean | undefined;
  error: string | undefined;
}

function spanWith(encoding: SpanEncoding, given: Given): KeptSpan {
  const parent = given.parent === undefined ? undefined : idOf(given.parent);
  const sink = {
    add: () => {},
    attribute: (name: string, value: AttributeValue) => encoding.attribute(name, value),
  };
  const trace = idOf("0af7651916cd43dd8448eb211c80319c");
  const id = idOf("b7ad6b7169203331");
  const span = new KeptSpan(sink, given.name, given.kind, trace, parent, parent && given.state, id);
  [span.startMs, span.endMs, span.error] = [12.3456, 1000, given.error];
  for (const [name, value] of given.attributes) span.set(name, value);
  if (given.link !== undefined)
    span.link = { traceId: "f".repeat(32), spanId: "e".repeat(16), isSampled: given.link, state: undefined };
  return span;
}

/** The spans as a strict collector reads them, from a batch of this encoding. */
function collected(encoding: SpanEncoding, spans: readonly Given[]) {
  const batch = new SpanBatch(encoding);
  for (const given of spans) expect(batch.add(spanWith(encoding, given), originMs)).toBe(true);
  return spansOf(encoding.contentType, batch.body());
}

const value = fc.oneof(
  fc.string({ unit: "binary", maxLength: 1500 }),
  fc.boolean(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((each) => !Object.is(each, -0)),
);
const given: fc.Arbitrary<Given> = fc.record({
  name: fc.string({ unit: "binary", minLength: 1, maxLength: 200 }),
  kind: fc.constantFrom("internal", "server", "client", "producer", "consumer"),
  parent: fc.option(fc.constant("00f067aa0ba902b7"), { nil: undefined }),
  state: fc.option(fc.constant('a=1,"b"=2'), { nil: undefined }),
  attributes: fc.uniqueArray(fc.tuple(fc.constantFrom("a.b", "kürzel", "c"), value), {
    selector: ([name]) => name,
  }),
  link: fc.option(fc.boolean(), { nil: undefined }),
  error: fc.option(fc.constant("ECONNRESET"), { nil: undefined }),
});

it("writes the same spans as JSON and as protobuf", () => {
  fc.assert(
    fc.property(fc.array(given, { minLength: 1, maxLength: 4 }), (spans) => {
      const [json, protobuf] = encodings.map((encoding) => collected(encoding, spans));
      expect(protobuf).toEqual(json);
      for (const [i, { attributes, startNs, endNs, kind, isError, resource: own }] of json!.entries()) {
        expect([startNs, endNs]).toEqual([1_793_491_200_012_596_000n, 1_793_491_201_000_250_000n]);
        expect(own).toEqual(Object.fromEntries(resource));
        expect(kind).toBe(
          ["internal", "server", "client", "producer", "consumer"].indexOf(spans[i]!.kind) + 1,
        );
        expect(isError).toBe(spans[i]!.error !== undefined);
        for (const [name, set] of spans[i]!.attributes)
          expect(attributes[name]).toBe(
            typeof set === "string"
              ? set.slice(0, 1024).toWellFormed()
              : Number.isSafeInteger(set)
                ? String(set)
                : set,
          );
      }
    }),
  );
});

it.each(encodings.map((each) => [each.contentType, each] as const))(
  "fills a batch of %s, and leaves out a span without room",
  (_, encoding) => {
    const batch = new SpanBatch(encoding);
    const long = "x".repeat(1024);
    const names = ["a", "b", "c"].map((name): [string, string] => [name, long]);
    const span = spanWith(encoding, {
      name: "n",
      kind: "server",
      parent: undefined,
      state: undefined,
      attributes: names,
      link: undefined,
      error: undefined,
    });
    while (batch.add(span, originMs));
    expect(batch.count).toBeLessThan(batchMax);
    expect(spansOf(encoding.contentType, batch.body())).toHaveLength(batch.count);
  },
);

it("reads how many spans a collector refused", () => {
  const [json, protobuf] = encodings as [SpanEncoding, SpanEncoding];
  expect(json.rejected(Buffer.from('{"partialSuccess":{"rejectedSpans":"2"}}'))).toBe(2);
  for (const other of ["", "{}", "not JSON"]) expect(json.rejected(Buffer.from(other))).toBe(0);
  const answer = Buffer.from([0x0a, 6, 0x08, 0xac, 0x02, 0x12, 1, 0x78]);
  expect(protobuf.rejected(answer)).toBe(300);
  for (const other of [[], [0x0a], [0x0a, 9], [0x0a, 0], [0x0f], Array.from({ length: 20 }, () => 0xff)])
    expect(protobuf.rejected(Buffer.from(other))).toBe(0);
});
