import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { batchMax, waitingMax } from "./span-batches.ts";
import { jsonEncoding } from "./otlp/json.ts";
import { SpanExporter } from "./span-exporter.ts";
import { Tracer } from "./spans/tracer.ts";

let server: Server | undefined;
let exporter: SpanExporter | undefined;
const failures: (Error | undefined)[] = [];
afterEach(async () => {
  await exporter?.close(0);
  server?.closeAllConnections();
  server?.close();
  failures.length = 0;
});

/** A collector that answers each request like this, and an exporter to it. `end` ends these many spans. */
async function start(answer: (response: ServerResponse, attempt: number) => void) {
  let attempts = 0;
  server = createServer((request, response) => {
    request.resume().on("end", () => answer(response, attempts++));
  });
  await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { ...exporterTo(`http://127.0.0.1:${port}/v1/traces`), attempts: () => attempts };
}

function exporterTo(url: string) {
  exporter = new SpanExporter({
    url,
    headers: {},
    encoding: jsonEncoding([], "1"),
    onState: (failure) => failures.push(failure),
  });
  const tracer = new Tracer(exporter, { followsParent: true, ratio: 1 });
  const end = (count: number): void => {
    for (let i = 0; i < count; i++) tracer.begin("a", "server").end();
  };
  return { exporter, end };
}

it("counts spans that a collector accepts, refuses in part, and refuses completely", async () => {
  const { exporter, end } = await start((response, attempt) => {
    if (attempt === 0) response.end();
    else if (attempt === 1) response.end('{"partialSuccess":{"rejectedSpans":"2"}}');
    else response.writeHead(attempt === 2 ? 500 : 200).end("not JSON");
  });
  const takes = async (exported: number, dropped: number): Promise<void> => {
    end(batchMax);
    await expect.poll(() => [exporter.exported, exporter.dropped]).toEqual([exported, dropped]);
  };
  await takes(batchMax, 0);
  await takes(2 * batchMax - 2, 2);
  await takes(2 * batchMax - 2, batchMax + 2);
  expect(failures.map((failure) => failure?.message)).toEqual([
    "the collector of traces responded with status 500",
  ]);
  await takes(3 * batchMax - 2, batchMax + 2);
  expect(failures.at(-1)).toBeUndefined();
});

it("sends a batch again that a busy collector asks for", async () => {
  const { exporter, end, attempts } = await start((response, attempt) => {
    response.writeHead(attempt === 0 ? 503 : 200).end();
  });
  end(batchMax);
  await expect.poll(() => exporter.exported).toBe(batchMax);
  expect([attempts(), exporter.dropped]).toEqual([2, 0]);
});

it("keeps a bounded number of spans for a collector that never answers, and drops the rest", async () => {
  const { exporter, end } = await start(() => {});
  end(batchMax + waitingMax + 100);
  expect(exporter.dropped).toBe(100);
  await exporter.close(20);
  expect(exporter.dropped).toBe(batchMax + waitingMax + 100);
});

it("drops spans when no collector listens, and ends in time", async () => {
  const { exporter, end } = exporterTo("http://127.0.0.1:1/v1/traces");
  end(10);
  await exporter.close(50);
  end(1);
  expect([exporter.exported, exporter.dropped]).toEqual([0, 11]);
});

it("sends the rest when it closes", async () => {
  const { exporter, end } = await start((response) => response.end());
  end(batchMax + 200);
  await exporter.close(5000);
  expect([exporter.exported, exporter.dropped]).toEqual([batchMax + 200, 0]);
});
