import { mkdtempSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, benchToken, startSelvedge, type Started } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atMost, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * Compares CPU time per commit of a Durable Object with and without `--object-log`, which ships the writes of objects.
 * A request makes many commits, so that its own cost is negligible. Each round ends when its writes are shipped.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 9);
const warmUpRounds = 3;
const commitsEach = 500;
const requests = 8;
const shippedMs = 2500;

const code = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async write() {
    for (let i = 0; i < ${commitsEach}; i++) {
      this.ctx.storage.kv.put("key", i);
      await this.ctx.storage.sync();
    }
    return "written";
  }
}
export default { async fetch(request, env) {
  return new Response(await env.ROOMS.getByName(new URL(request.url).pathname).write());
} };`;

interface Side extends Started {
  host: string;
}

async function start(args: readonly string[]): Promise<Side> {
  const selvedge = await startSelvedge(args);
  const { ready } = selvedge;
  const account = `/accounts/${ready.account_id}`;
  const form = new FormData();
  const metadata = {
    main_module: "index.js",
    compatibility_date: "2026-11-01",
    bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
    migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] },
  };
  form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
  form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
  const uploaded = await fetch(`${ready.api}${account}/workers/scripts/rooms`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!uploaded.ok) throw new Error(await uploaded.text());
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  return { ...selvedge, host: `rooms.${subdomain}.workers.localhost` };
}

const backups = mkdtempSync(join(tmpdir(), "object-log-"));
const sides = {
  log: await start(["--backup-folder", backups, "--object-log", "1s"]),
  plain: await start([]),
};
type Name = keyof typeof sides;
const cpu: Record<Name, number[]> = { log: [], plain: [] };
for (let round = -warmUpRounds; round < rounds; round++) {
  const order: Name[] = round % 2 === 0 ? ["log", "plain"] : ["plain", "log"];
  for (const name of order) {
    const { pid, ready, host } = sides[name];
    const before = treeCpuMicroseconds(pid);
    await load(ready.edge, requests, 4, (index) => ({
      method: "GET",
      path: `/o${index % 4}`,
      headers: { host },
    }));
    await delay(shippedMs);
    const after = treeCpuMicroseconds(pid);
    const used = after.own + after.below - before.own - before.below;
    if (round >= 0) cpu[name].push(used / (requests * commitsEach));
  }
}
printTable(
  ["CPU µs of a commit", "with --object-log 1s", "without"],
  [["all processes", median(cpu.log), median(cpu.plain)]],
);
printGoals([
  atMost("CPU of shipping a commit, asynchronously / the commit", pairedRatio(cpu.log, cpu.plain) - 1, 0.1),
]);
for (const side of Object.values(sides)) await side.stop();
rmSync(backups, { recursive: true });
