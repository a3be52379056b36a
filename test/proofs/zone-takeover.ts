/** Random calls of an account that wants the hosts of others: `zone-takeover.ts [RUNS] [SEED]`. Prints what was done and refused. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestServer } from "../helpers/server.ts";
import { Customers } from "../zones/customers.ts";
import { tryToTakeOver } from "../zones/takeover.ts";

const numRuns = Number(process.argv[2] ?? 300);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const folder = mkdtempSync(join(tmpdir(), "selvedge-takeover-"));
const server = await startTestServer({ edgeTlsListen: "127.0.0.1:0", resolvers: ["127.0.0.1:1"] });
const customers = new Customers(server, folder);
try {
  const outcomes = await tryToTakeOver(server, customers, { numRuns, seed });
  console.log({ runs: numRuns, seed });
  console.table(outcomes);
} finally {
  customers.close();
  await server.close(1000);
  rmSync(folder, { recursive: true });
}
