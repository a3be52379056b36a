import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { chaos } from "../proofs/cells-chaos.ts";

/** A few seconds of test/proofs/cells-chaos.ts, at a slower pace. */
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => server.close(1000));

it.runIf(process.platform === "linux")("scripts are not affected by others, or by killed cells", async () => {
  const options = { seconds: 8, perSecond: 40, killEveryMs: 1000 };
  const report = await chaos({ ...server.ready, token: ownerToken }, options);
  expect(report.failures).toEqual([]);
  expect(report.kills).toBeGreaterThan(0);
});
