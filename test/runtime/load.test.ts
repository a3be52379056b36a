import { expect, test } from "vitest";
import { ownerToken, startTestServer } from "../helpers/server.ts";
import { load } from "../proofs/load.ts";

/* The short form of test/proofs/load.ts: the same cases with fewer requests. */

test.each([
  ["visitors of a sleeping script", 0.5],
  ["requests with 990 sleeping service calls each", 0.5],
  ["a sleeping customer of a dispatcher", 0.2],
  ["hosts that fetch each other", 0.1],
  ["fan-outs of 50 over bindings, on every level", 0.25],
  ["fetches from a server that never answers", 0.25],
])("innocent requests do not pay for %s", async (only, share) => {
  const server = await startTestServer({ cells: 1, privateNetworks: "all" });
  try {
    const platform = { ready: server.ready, token: ownerToken };
    const [row] = await load(platform, { seconds: 3, perSecond: 20, share, only });
    expect(row!.failures).toEqual([]);
    expect(row!.asked).toBeGreaterThan(0);
  } finally {
    await server.close(0);
  }
});
