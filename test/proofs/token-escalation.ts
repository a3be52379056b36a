/** Random sequences of calls about tokens, members and roles: `token-escalation.ts [RUNS] [SEED]`. Prints which calls were allowed and refused. */
import { startTestServer } from "../helpers/server.ts";
import { tryToEscalate } from "../tokens/escalation.ts";

const numRuns = Number(process.argv[2] ?? 5000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const server = await startTestServer();
try {
  const outcomes = await tryToEscalate(server, { numRuns, seed });
  console.log({ runs: numRuns, seed });
  console.table(outcomes);
} finally {
  await server.close(1000);
}
