import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { z } from "zod";
import { decodeTraces } from "./otlp-protobuf.ts";
import { unawaited } from "../../src/platform/util/uncaught.ts";

/*
 * A collector of OpenTelemetry: takes OTLP/HTTP with JSON, by the JSON mapping of opentelemetry-proto 1.x, and with
 * protobuf. An unknown field, a number for a 64-bit integer, a name for an enumeration or a malformed id makes it refuse
 * the whole request.
 */

const notZero = (text: string): boolean => !/^0*$/.test(text);
const traceId = z
  .string()
  .regex(/^[\da-f]{32}$/)
  .refine(notZero);
const spanId = z
  .string()
  .regex(/^[\da-f]{16}$/)
  .refine(notZero);
const uint64 = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,19})$/)
  .refine((text) => BigInt(text) < 2n ** 64n);
const int64 = z.string().regex(/^-?(?:0|[1-9]\d{0,18})$/);
const value = z.union([
  z.strictObject({ stringValue: z.string().refine((text) => text.isWellFormed()) }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: int64 }),
  z.strictObject({ doubleValue: z.number() }),
]);
const attributes = z
  .array(z.strictObject({ key: z.string().min(1), value }))
  .refine((list) => new Set(list.map(({ key }) => key)).size === list.length, "keys must be unique");
const span = z.strictObject({
  traceId,
  spanId,
  traceState: z.string().optional(),
  parentSpanId: spanId.optional(),
  flags: z.int().min(0).max(0xffffffff).optional(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: uint64,
  endTimeUnixNano: uint64,
  attributes,
  links: z
    .array(
      z.strictObject({
        traceId,
        spanId,
        traceState: z.string().optional(),
        flags: z.int().min(0).max(0xffffffff).optional(),
        attributes: attributes.optional(),
      }),
    )
    .optional(),
  status: z.strictObject({ code: z.int().min(0).max(2), message: z.string().optional() }).optional(),
});
const request = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string().min(1), version: z.string().optional() }),
          spans: z.array(span).min(1),
        }),
      ),
    }),
  ),
});

/** A span as the collector received it, with its attributes and those of its process by name. */
export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  traceState: string | undefined;
  name: string;
  kind: number;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
  links: { traceId: string; spanId: string; flags: number | undefined }[];
  isError: boolean;
}

export interface Collector {
  url: string;
  /** In the order of their arrival. */
  spans: CollectedSpan[];
  /** Why requests were refused. Must stay empty. */
  refused: string[];
  headers: IncomingMessage["headers"][];
  /** The answer to each request, to play a slow or failing collector. It resolves with a status. */
  answer: () => Promise<number> | number;
  /** Waits until a span is there that a test looks for, and returns it. */
  find(what: (span: CollectedSpan) => boolean): Promise<CollectedSpan>;
  /** Waits until these many spans of a trace are there. */
  trace(id: string, count: number): Promise<CollectedSpan[]>;
  close(): void;
}

const plain = (list: z.infer<typeof attributes>): Record<string, unknown> =>
  Object.fromEntries(list.map((each) => [each.key, Object.values(each.value)[0]]));

const decoders: Readonly<Record<string, (body: Buffer) => unknown>> = {
  "application/json": (body) => JSON.parse(body.toString()),
  "application/x-protobuf": decodeTraces,
};

/** The spans in the body of a request. Throws if it is not as OTLP says. */
export function spansOf(type: string | undefined, body: Buffer): CollectedSpan[] {
  const decode = decoders[type ?? ""];
  if (decode === undefined) throw new Error(`Unexpected type ${type}`);
  return request.parse(decode(body)).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((each) => {
        const [startNs, endNs] = [BigInt(each.startTimeUnixNano), BigInt(each.endTimeUnixNano)];
        if (endNs < startNs) throw new Error(`The span ${each.name} ends before it starts`);
        return {
          traceId: each.traceId,
          spanId: each.spanId,
          parentSpanId: each.parentSpanId,
          traceState: each.traceState,
          name: each.name,
          kind: each.kind,
          startNs,
          endNs,
          attributes: plain(each.attributes),
          resource: plain(resource.attributes),
          links: (each.links ?? []).map(({ traceId: of, spanId: at, flags }) => ({
            traceId: of,
            spanId: at,
            flags,
          })),
          isError: each.status?.code === 2,
        };
      }),
    ),
  );
}

/** Starts a collector on a free port. */
export async function startCollector(): Promise<Collector> {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    const take = async (): Promise<void> => {
      const status = await collector.answer();
      collector.headers.push(incoming.headers);
      const type = incoming.headers["content-type"];
      const body = Buffer.concat(chunks);
      if (status === 200) {
        try {
          if (incoming.method !== "POST" || incoming.url !== "/v1/traces")
            throw new Error(`Unexpected ${incoming.method} ${incoming.url}`);
          collector.spans.push(...spansOf(type, body));
        } catch (error) {
          collector.refused.push(`${(error as Error).message}\n${body.toString("latin1")}`);
          response.writeHead(400).end();
          return;
        }
      }
      response.writeHead(status, { "content-type": type }).end(type === "application/json" ? "{}" : "");
    };
    incoming.on("end", () => unawaited(take()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    refused: [],
    headers: [],
    answer: () => 200,
    async find(what) {
      await expect.poll(() => collector.spans.some(what)).toBe(true);
      return collector.spans.find(what)!;
    },
    async trace(id, count) {
      const found = (): CollectedSpan[] => collector.spans.filter(({ traceId: each }) => each === id);
      await expect.poll(() => found().length).toBeGreaterThanOrEqual(count);
      return found();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return collector;
}

/** A trace as lines, in which each span is below its parent. Roots are spans whose parent is not there. */
export function treeOf(spans: readonly CollectedSpan[]): string {
  const lines: string[] = [];
  const add = (parent: string | undefined, depth: number): void => {
    const below = spans
      .filter(({ parentSpanId }) =>
        parent === undefined
          ? !spans.some(({ spanId: each }) => each === parentSpanId)
          : parentSpanId === parent,
      )
      .toSorted((a, b) => (a.startNs < b.startNs ? -1 : 1));
    for (const each of below) {
      lines.push(`${"  ".repeat(depth)}${each.name}`);
      add(each.spanId, depth + 1);
    }
  };
  add(undefined, 0);
  return lines.join("\n");
}
