import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { Customers } from "./customers.ts";
import { tryToTakeOver } from "./takeover.ts";

let server: TestServer;
let customers: Customers;
const folder = mkdtempSync(join(tmpdir(), "selvedge-takeover-"));
beforeAll(async () => {
  server = await startTestServer({ edgeTlsListen: "127.0.0.1:0", resolvers: ["127.0.0.1:1"] });
  customers = new Customers(server, folder);
});
afterAll(async () => {
  customers.close();
  await server.close(1000);
  rmSync(folder, { recursive: true });
});

/** test/proofs/zone-takeover.ts runs many more sequences. */
it("no call of another account changes the owner of a host for visitors, in the DNS, or by its certificate", async () => {
  const outcomes = await tryToTakeOver(server, customers, { numRuns: 6, seed: 1 });
  for (const kind of ["record done", "certificate done", "zone refused"])
    expect(outcomes[kind]).toBeGreaterThan(0);
});
