import { parseArgs } from "node:util";
import { killDatabaseCells } from "../d1/killed-cell.ts";

/*
 * kill -9 of a database's cell under writers: each acknowledged write is there once. `npm test` runs 20 rounds.
 *
 *   node test/proofs/d1-crash.ts [--rounds 50]
 */
const { values } = parseArgs({ options: { rounds: { type: "string", default: "50" } } });
const tally = await killDatabaseCells(Number(values.rounds));
process.stdout.write(`${JSON.stringify(tally, undefined, 2)}\n`);
if (tally.lost > 0 || tally.doubled > 0) process.exitCode = 1;
