import { startCores } from "../cores/cores.ts";
import { Program, versionOf } from "../cores/program.ts";
import { processesOf, replaceUnderLoad } from "../cores/replacements.ts";

/**
 * Replaces every process of a node ten times, each time by another version, under clients with a new connection
 * for each request, and 20 WebSockets. No connection may be lost: `node test/proofs/replacements.ts [rounds]`.
 */
const rounds = Number(process.argv[2] ?? 10);
const edges = 4;
const clients = 8;
const webSockets = 20;

using program = new Program(true);
program.install("version-0");
await using cores = await startCores(edges, [], program.path);
await cores.addName("www");
const started = performance.now();
const { answers, closed, unreplaced } = await replaceUnderLoad(cores, {
  rounds,
  clients,
  webSockets,
  before: (round) => program.install(`version-${round}`),
});
const versions = new Set(processesOf(cores).map(versionOf));
const seconds = Math.round((performance.now() - started) / 1000);
const report = {
  rounds,
  seconds,
  answers: [...answers],
  closed: [...closed],
  versions: [...versions],
  unreplaced,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
const isWhole =
  [...answers.keys()].join() === "200" &&
  [...closed].join() === `1001,${rounds * webSockets}` &&
  [...versions].join() === `version-${rounds}` &&
  unreplaced === 0;
process.exitCode = isWhole ? 0 : 1;
