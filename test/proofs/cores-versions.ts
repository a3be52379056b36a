import { changeVersions } from "../cores/versions.ts";
import { startCores } from "../cores/cores.ts";

/**
 * Deploys versions of scripts one after another to a node with four edge processes. Each must be in effect in all of them
 * when the API has answered: `node test/proofs/cores-versions.ts [rounds]`.
 */
const rounds = Number(process.argv[2] ?? 200);

await using cores = await startCores(4);
const stale = await changeVersions(cores, rounds);
process.stdout.write(`${JSON.stringify({ rounds, stale: stale.slice(0, 20) })}\n`);
process.exitCode = stale.length === 0 ? 0 : 1;
