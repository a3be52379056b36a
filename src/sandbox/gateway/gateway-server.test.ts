import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { RunHooks } from "./run-hooks.ts";
import { refuse } from "./gateway-server.ts";
import { CellsHarness, snippet } from "../testing.ts";

const harness = new CellsHarness();
beforeAll(async () => {
  await harness.listen();
  // A body that fits into the connection's buffers: the connection looks reusable.
  harness.add(
    snippet(
      "sends",
      `export default { async fetch(request) {
        const answers = [];
        for (let i = 0; i < 10; i++) {
          const body = i % 2 === 0 ? new Blob([new Uint8Array(400e3)]).stream().pipeThrough(new TransformStream()) : null;
          try { answers.push(await (await fetch("https://elsewhere.example/", { method: "POST", body })).text()) }
          catch (error) { answers.push(error.message) }
        }
        return Response.json(answers);
      } }`,
    ),
  );
});
afterAll(() => harness.close());

/** Reads only the first chunk of a body. */
const readingLittle =
  (then: (response: Parameters<RunHooks["fetch"]>[2]) => void): RunHooks["fetch"] =>
  (_url, request, response) => {
    void (async () => {
      try {
        for await (const chunk of request) if ((chunk as Buffer).length > 0) throw new Error("enough");
        response.end("nothing");
      } catch {
        then(response);
      }
    })();
  };
const answers = async (): Promise<string[]> => JSON.parse((await harness.fetch("/sends/")).text) as string[];

it("goes on with a cell after a body that was refused in the middle", async () => {
  harness.hooks = { fetch: readingLittle((response) => refuse(response, "enough")) };
  expect(await answers()).toEqual(Array.from({ length: 5 }, () => ["enough", "nothing"]).flat());
});

it("goes on with a cell after an answer before the end of a body, and after an answer that breaks off", async () => {
  for (const then of ["end", "destroy"] as const) {
    harness.hooks = {
      fetch: readingLittle((response) => response.writeHead(200).write("part", () => response[then]())),
    };
    expect((await answers()).filter((_, i) => i % 2 === 1)).toEqual(Array(5).fill("nothing"));
  }
});

it("drops and frees the rest of a broken-off body, even when the connection was paused", async () => {
  const requests: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  /** Bytes that had been buffered when the body was broken off. */
  const ahead: number[] = [];
  harness.hooks = {
    fetch: (_url, request, response) => {
      requests.push(request);
      sockets.add(request.socket);
      void (async () => {
        try {
          for await (const chunk of request) {
            expect(chunk).not.toHaveLength(0);
            await vi.waitFor(() => expect(request.readableLength).toBeGreaterThan(60e3));
            ahead.push(request.readableLength);
            throw new Error("enough");
          }
          ahead.push(0);
          response.end("nothing");
        } catch (error) {
          refuse(response, (error as Error).message);
        }
      })();
    },
  };
  expect(await answers()).toEqual(Array.from({ length: 5 }, () => ["enough", "nothing"]).flat());
  await vi.waitFor(() => expect(requests.every(({ complete }) => complete)).toBe(true));
  expect(requests.map(({ readableLength }) => readableLength)).toEqual(ahead);
  // The connections are reused.
  expect(sockets.size).toBeLessThan(6);
});
