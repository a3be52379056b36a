import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPostgres } from "../helpers/postgres.ts";
import { Node, pause, Witness } from "../workflows/crash.ts";

/**
 * Two nodes share a PostgreSQL database. In each round one of them is killed in the middle of running workflows, then
 * started again; at last one is stopped for three leases and goes on, a zombie. None may be lost, and no step whose
 * result came back may run again. `node test/proofs/workflows-nodes.ts --rounds 20 --instances 500`
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    instances: { type: "string", default: "500" },
  },
});
const rounds = Number(values.rounds);
const instances = Number(values.instances);
const path = "/workflows/crash/instances";
const folders: string[] = [];
const postgres = await startPostgres();
const url = await postgres.createDatabase();
const witness = new Witness();
await witness.listen();
const makeNode = (): Node => {
  folders.push(mkdtempSync(join(tmpdir(), "workflows-nodes-")));
  return new Node([
    "--data-dir",
    folders.at(-1)!,
    "--private-networks",
    "all",
    "--database-url",
    url,
    "--blob-url",
    "postgres",
  ]);
};
const nodes = [makeNode(), makeNode()] as const;
for (const node of nodes) await node.start();
await nodes[0].deploy(witness);
let total = 0;

async function createOnBoth(name: string): Promise<void> {
  witness.forget();
  await Promise.all(nodes.map(async (node, i) => node.create(`${name}-${i}`, instances / 2)));
  total += instances;
}

function check(what: string): void {
  if (witness.violations.length > 0)
    throw new Error(
      `${what}: steps ran again after their result had come back: ${witness.violations.slice(0, 5).join(", ")}`,
    );
  if (witness.begunCount !== instances * 10) throw new Error(`${what}: ${witness.begunCount} steps ran`);
}

const takeovers: number[] = [];
for (let i = 0; i < rounds; i++) {
  const [victim, other] = i % 2 === 0 ? nodes : [nodes[1], nodes[0]];
  await pause(5000); // until both hold their share
  await createOnBoth(`r${i}`);
  await pause(200 + Math.random() * 2000);
  const killedAt = performance.now();
  await victim.kill("both");
  await other.completed(total, 180_000);
  takeovers.push(performance.now() - killedAt);
  check(`round ${i + 1}`);
  await victim.start();
  process.stdout.write(
    `round ${i + 1}: all ${instances} complete ${(takeovers.at(-1)! / 1000).toFixed(1)} s after one of two nodes was killed; ${witness.repeated} steps in flight repeated, 0 lost, 0 run again after their result\n`,
  );
}

await pause(5000);
await createOnBoth("zombie");
await pause(800);
process.kill(nodes[0].pid, "SIGSTOP");
await nodes[1].completed(total, 180_000);
process.kill(nodes[0].pid, "SIGCONT");
await pause(5000);
check("zombie");
const rows = (await nodes[0].call("GET", `${path}?per_page=100`)) as { status: string }[];
if (rows.some(({ status }) => status !== "complete")) throw new Error("the zombie wrote");
process.stdout.write(
  `a node that stood still while its instances were taken over: nothing of it counted, ${witness.repeated} steps in flight repeated\n`,
);

for (const node of nodes) await node.stop();
witness.close();
await postgres.stop();
for (const folder of folders) rmSync(folder, { recursive: true, force: true });
const sorted = takeovers.toSorted((a, b) => a - b);
process.stdout.write(
  `${rounds} rounds of ${instances}: 0 lost, 0 executed again after their acknowledgement; all complete after ${(sorted[sorted.length >> 1]! / 1000).toFixed(1)} s (median), ${(sorted.at(-1)! / 1000).toFixed(1)} s at most\n`,
);
