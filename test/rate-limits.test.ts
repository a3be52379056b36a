import { expect, it, onTestFinished, vi } from "vitest";
import { startPostgres } from "./helpers/postgres.ts";
import { startTestServer, type TestServer } from "./helpers/server.ts";

it("two nodes share the rate limit of the API", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const databaseUrl = await postgres.createDatabase();
  const limit = 60;
  const settings = { databaseUrl, apiRateLimit: limit, apiRateWindowSeconds: 3600 };
  const [first, second] = [await startTestServer(settings), await startTestServer(settings)];
  await vi.waitFor(
    () => expect([first, second].map(({ services }) => services.nodeRegistry.live)).toEqual([2, 2]),
    20_000,
  );
  /** Calls that were answered before one was refused. */
  const spend = async (server: TestServer): Promise<number> => {
    for (let answered = 0; ; answered++) {
      const { status, headers } = await server.call("GET", "/user");
      if (status === 200) continue;
      expect([status, Number(headers.get("retry-after"))]).toEqual([429, expect.any(Number)]);
      return answered;
    }
  };
  let total = await spend(first);
  expect(total).toBeGreaterThanOrEqual(limit / 2);
  // The exchanges give it what the other node does not use.
  await vi.waitFor(
    async () => {
      total += await spend(first);
      expect(total).toBeGreaterThan(limit - 4);
    },
    { timeout: 40_000, interval: 500 },
  );
  total += await spend(second);
  // Two limits of their own would be twice as much. The unit tests say how exact it is.
  expect(total).toBeLessThanOrEqual(limit * 1.25);
  await second.close(1000);
  await first.close(1000);
});
