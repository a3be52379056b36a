import { execFile } from "node:child_process";
import { symlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "../../helpers/server.ts";
import { requestEdge } from "../../helpers/edge-request.ts";
import { describePrograms } from "./describe.ts";
import { npm } from "./packages.ts";

// Infrastructure as code: a program with alchemy creates, finds unchanged, changes and deletes every resource.
const domain = "alchemy-of-others.com";
const program = `
import alchemy from "alchemy";
import { DnsRecords, KVNamespace, Queue, Worker, Zone } from "alchemy/cloudflare";
const [phase, text] = process.argv.slice(2);
const app = await alchemy("programs", { phase, password: "a password", stage: "test", noTrack: true });
const zone = await Zone("zone", { name: "${domain}", type: "full" });
const records = await DnsRecords("records", { zoneId: zone.id, records: [
  { name: "www.${domain}", type: "A", content: "192.0.2.1", proxied: false },
  { name: "${domain}", type: "MX", content: "mail.example.com", priority: 10 },
  { name: "${domain}", type: "TXT", content: text },
] });
const kv = await KVNamespace("kv", { title: "alchemy", values: [{ key: "greeting", value: "hello" }] });
const queue = await Queue("queue", { name: "alchemy" });
await Worker("worker", { name: "alchemy", entrypoint: "./worker.ts", url: true, crons: ["0 0 * * *"],
  bindings: { KV: kv, QUEUE: queue, SECRET: alchemy.secret("sesame"), TEXT: text } });
await app.finalize();
`;
const worker = `export default {
  async fetch(request: Request, env: any): Promise<Response> {
    await env.QUEUE.send({ path: new URL(request.url).pathname });
    return Response.json([await env.KV.get("greeting"), env.SECRET, env.TEXT]);
  },
  async scheduled(): Promise<void> {},
};`;

describePrograms("alchemy", [npm("alchemy@0.94.0")], (packageFolder) => {
  let server: TestServer;
  const folder = temporaryFolder();
  beforeAll(async () => {
    server = await startTestServer();
    symlinkSync(join(packageFolder, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "program.mjs"), program);
    writeFileSync(join(folder, "worker.ts"), worker);
  });
  afterAll(async () => {
    await server.close(1000);
    rmSync(folder, { recursive: true, force: true });
  });
  const run = async (phase: "up" | "destroy", text: string): Promise<string> => {
    const env = {
      PATH: process.env["PATH"]!,
      HOME: folder,
      CLOUDFLARE_BASE_URL: server.ready.api,
      CLOUDFLARE_ACCOUNT_ID: server.ready.account_id,
      CLOUDFLARE_API_TOKEN: ownerToken,
      ALCHEMY_TELEMETRY_DISABLED: "1",
    };
    const args = [join(folder, "program.mjs"), phase, text];
    return (await promisify(execFile)(process.execPath, args, { env, cwd: folder, timeout: 120_000 })).stdout;
  };
  const answer = async (): Promise<unknown> =>
    JSON.parse((await requestEdge(server.ready.edge, "alchemy.selvedge.workers.localhost", "/")).body);

  it("creates, finds unchanged, changes and deletes a zone, records, values, a queue and a script", async () => {
    await run("up", "one");
    expect(await answer()).toEqual(["hello", "sesame", "one"]);
    const zone = server.services.zones.list().find(({ name }) => name === domain)!;
    const records = await Array.fromAsync(server.client.dns.records.list({ zone_id: zone.id }));
    expect(records.map(({ type }) => type).toSorted()).toEqual(["A", "MX", "TXT"]);
    expect((await run("up", "one")).match(/no changes/g)).toHaveLength(4);
    await run("up", "two");
    expect(await answer()).toEqual(["hello", "sesame", "two"]);
    await run("destroy", "two");
    const account_id = server.ready.account_id;
    expect(server.services.zones.list()).toEqual([]);
    expect(await Array.fromAsync(server.client.workers.scripts.list({ account_id }))).toEqual([]);
    expect(await Array.fromAsync(server.client.queues.list({ account_id }))).toEqual([]);
    expect(await Array.fromAsync(server.client.kv.namespaces.list({ account_id }))).toEqual([]);
  }, 240_000);
});
