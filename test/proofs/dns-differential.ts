/** 20 generated zones, 10,000 questions each, to us and to NSD; prints what was compared, and fails on a difference. */
import { compareWithNsd } from "../name-server/differential.ts";
import { startTestServer } from "../helpers/server.ts";

const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
const server = await startTestServer();
const compared = await compareWithNsd(server, { zones: 20, records: 300, questionsPerZone: 10_000, seed });
await server.close(1000);
console.log(JSON.stringify({ seed, ...compared }, null, 2));
process.exitCode = compared.differences.length === 0 ? 0 : 1;
