import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { startPostgres } from "../helpers/postgres.ts";

/**
 * Several processes start at once on an empty PostgreSQL database. There must be one owner, one account and one
 * token, and one process prints the token. `node test/proofs/first-owner.ts --races 20 --nodes 3`
 */
const { values } = parseArgs({
  options: { races: { type: "string", default: "20" }, nodes: { type: "string", default: "3" } },
});
const races = Number(values.races);
const nodes = Number(values.nodes);
const postgres = await startPostgres();
const root = mkdtempSync(join(tmpdir(), "first-owner-"));
const listeners = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);

/** Starts a node, and resolves with what it prints until it is ready, and its end. */
async function start(name: string, url: string): Promise<{ printed: string; stop: () => Promise<void> }> {
  const settings = ["--data-dir", join(root, name), "--database-url", url, "--blob-url", "postgres"];
  const child = spawn(process.execPath, ["bin/selvedge.js", "serve", ...listeners, ...settings], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let [printed, errors] = ["", ""];
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
      if (/API token[^\n]*\n/.test(printed)) resolve();
    });
    child.once("exit", () => reject(new Error(`${name} ended: ${errors}`)));
  });
  return {
    printed,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

let wrong = 0;
for (let race = 0; race < races; race++) {
  const url = await postgres.createDatabase();
  const started = await Promise.all(
    Array.from({ length: nodes }, async (_, node) => start(`${race}-${node}`, url)),
  );
  const database = new Client(url);
  await database.connect();
  const counts: Record<string, number> = {};
  for (const table of ["users", "accounts", "memberships", "api_tokens"]) {
    const { rows } = await database.query<{ count: string }>(`select count(*) as count from ${table}`);
    counts[table] = Number(rows[0]!.count);
  }
  await database.end();
  // A new token is printed in full: 40 characters or more.
  const printed = started.filter((each) => /API token\W+[\w-]{40,}/.test(each.printed)).length;
  const isRight = Object.values(counts).every((count) => count === 1) && printed === 1;
  if (!isRight) wrong++;
  process.stdout.write(`race ${race + 1}: ${JSON.stringify(counts)}, tokens printed: ${printed}\n`);
  for (const each of started) await each.stop();
}
await postgres.stop();
rmSync(root, { recursive: true, force: true });
process.stdout.write(
  `${races} races of ${nodes} nodes on an empty database: ${wrong} without exactly one owner\n`,
);
if (wrong > 0) process.exitCode = 1;
