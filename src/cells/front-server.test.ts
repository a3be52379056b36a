import { afterAll, beforeAll, expect, it } from "vitest";
import { refuse, type RunHooks } from "./front-server.ts";
import { CellsHarness, snippet } from "./testing.ts";

const harness = new CellsHarness();
beforeAll(async () => {
  await harness.listen();
  // As much as the connection holds by itself: it looks as if it could be used again.
  harness.add(
    snippet(
      "sends",
      `export default { async fetch(request) {
        const told = [];
        for (let i = 0; i < 10; i++) {
          const body = i % 2 === 0 ? new Blob([new Uint8Array(150e3)]).stream().pipeThrough(new TransformStream()) : null;
          try { told.push(await (await fetch("https://elsewhere.example/", { method: "POST", body })).text()) }
          catch (error) { told.push(error.message) }
        }
        return Response.json(told);
      } }`,
    ),
  );
});
afterAll(() => harness.close());

/** Reads no more than the first part of a body. */
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
const told = async (): Promise<string[]> => JSON.parse((await harness.visit("/sends/")).text) as string[];

it("goes on with a cell after a body that was refused in the middle", async () => {
  harness.hooks = { fetch: readingLittle((response) => refuse(response, "enough")) };
  expect(await told()).toEqual(Array.from({ length: 5 }, () => ["enough", "nothing"]).flat());
});

it("goes on with a cell after an answer to a part of a body, and one that breaks off", async () => {
  for (const then of ["end", "destroy"] as const) {
    harness.hooks = {
      fetch: readingLittle((response) => response.writeHead(200).write("part", () => response[then]())),
    };
    expect((await told()).filter((_, i) => i % 2 === 1)).toEqual(Array(5).fill("nothing"));
  }
});
