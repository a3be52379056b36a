import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { tryToEscalate } from "./escalation.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close(1000));

/** test/proofs/token-escalation.ts runs many more scenarios. */
it("no sequence of calls on tokens, members and roles gains a permission that its first caller lacked", async () => {
  const outcomes = await tryToEscalate(server, { numRuns: 150, seed: 1 });
  // Each kind of call must have been both allowed and rejected, or the test proved nothing.
  for (const kind of ["create", "update", "roll", "delete", "invite", "roles", "remove"])
    for (const result of ["true", "false"]) expect(outcomes[`${kind} ${result}`]).toBeGreaterThan(0);
}, 300_000);
