import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { workerdPath } from "../../src/sandbox/process/launch.ts";

/*
 * The lower limit for steps that run in an isolate of their own: `GET /10` goes to node:http, over one WebSocket to a
 * worker, and from there to a script in another isolate, which sends its ten results to that worker over RPC. Results
 * are not stored. Prints its port when it listens.
 */
const main = `
import { RpcTarget } from "cloudflare:workers";
class Journal extends RpcTarget { commit() { return ""; } }
export default { fetch(request, env) {
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  server.addEventListener("message", async ({ data }) => {
    const [id, count] = data.split(" ");
    server.send(id + " " + await env.SCRIPT.run(new Journal(), Number(count)));
  });
  return new Response(null, { status: 101, webSocket: client });
} };`;
const script = `
import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  async run(socket, count) {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const value = await (async () => i)();
      await socket.commit(JSON.stringify(["done", "do:s" + i + "-1", 1, 0, "j" + JSON.stringify(value)]));
      sum += value;
    }
    return sum;
  }
}`;
const worker = (name: string, code: string, bindings = ""): string =>
  `(name = "${name}", worker = (modules = [(name = "main.js", esModule = ${JSON.stringify(code)})],
    compatibilityDate = "2026-11-01"${bindings}))`;
const folder = mkdtempSync(join(tmpdir(), "bare-steps-"));
writeFileSync(
  join(folder, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${worker("main", main, `, bindings = [(name = "SCRIPT", service = "script")]`)},
    ${worker("script", script)},
  ],
  sockets = [(name = "main", address = "127.0.0.1:0", service = "main", http = ())]);
`,
);
const child = spawn(workerdPath(), ["serve", "--control-fd=3", "config.capnp"], {
  cwd: folder,
  stdio: ["ignore", "inherit", "inherit", "pipe"],
});
const port = await new Promise<string>((resolve) =>
  child.stdio[3]!.on("data", (chunk: Buffer) => {
    const found = /"port":\s*(\d+)/.exec(chunk.toString())?.[1];
    if (found !== undefined) resolve(found);
  }),
);
const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { perMessageDeflate: false });
await new Promise<void>((resolve) => socket.once("open", () => resolve()));
const waiting = new Map<string, ServerResponse>();
socket.on("message", (message: Buffer) => {
  const [id, sum] = message.toString().split(" ") as [string, string];
  waiting.get(id)!.end(sum);
  waiting.delete(id);
});
let started = 0;
const server = createServer((request, response) => {
  const id = String(started++);
  waiting.set(id, response);
  socket.send(`${id} ${request.url!.slice(1)}`);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => {
  child.kill();
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
