import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { chaos } from "../proofs/cells-chaos.ts";

/** A few seconds, at a slower pace, of what test/proofs/cells-chaos.ts does for two minutes. */
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => server.close(1000));

it.runIf(process.platform === "linux")(
  "nobody pays for what others do, nor for cells that are killed",
  async () => {
    const options = { seconds: 8, perSecond: 40, killEveryMs: 1000 };
    const report = await chaos({ ...server.ready, token: ownerToken }, options);
    expect(report.failures).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
  },
);
