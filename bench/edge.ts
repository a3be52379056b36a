import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { pino } from "pino";
import { Pool } from "undici";
import { AddressPolicy, createEdge, edgeDefaults, EdgeSnapshot, EdgeZone } from "../src/edge/request/edge.ts";
import { bareProxy } from "./lib/bare-proxy.ts";
import { startPeer } from "./lib/child.ts";
import { load, type Request } from "./lib/load.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
  type Goal,
} from "./lib/measure.ts";
import { freePort } from "../test/helpers/free-port.ts";

const rounds = 15;
const host = "www.bench.example";
const headers = { host };
const body = "x".repeat(10 * 1024 * 1024);
const kinds: { name: string; request: Request; count: number; connections: number }[] = [
  { name: "1 KB answer", request: { method: "GET", path: "/1024", headers }, count: 3000, connections: 16 },
  { name: "10 MB answer", request: { method: "GET", path: "/10485760", headers }, count: 40, connections: 2 },
  { name: "10 MB body", request: { method: "POST", path: "/2", headers, body }, count: 40, connections: 2 },
];

/** Reads the whole body, then answers /N with N bytes. */
function origin(): RequestListener {
  const answers = new Map<string, Buffer>();
  return (request, response) => {
    const url = request.url!;
    let answer = answers.get(url);
    if (answer === undefined) answers.set(url, (answer = Buffer.alloc(Number(url.slice(1)), "x")));
    request.resume().on("end", () => {
      response.writeHead(200, {
        "content-type": "application/octet-stream",
        "content-length": answer.length,
      });
      response.end(answer);
    });
  };
}

/** A bare proxy in front of the origin that streams bodies in both directions. */
function proxyBefore(originPort: number): RequestListener {
  const pool = new Pool(`http://127.0.0.1:${originPort}`, { connections: 128 });
  return bareProxy(pool, (request) => ({
    headers: request.rawHeaders.filter((_, i, all) => all[i & ~1]!.toLowerCase() !== "connection"),
    body: request.headers["content-length"] === undefined ? null : request,
  }));
}

async function startEdge(originPort: number): Promise<number> {
  const zone = new EdgeZone("z", "bench.example", false);
  zone.setHost(host, { isProxied: true, targets: [{ type: "A", content: "127.0.0.1" }] });
  zone.originRules = [{ matches: () => true, port: originPort }];
  const snapshot = new EdgeSnapshot();
  snapshot.add(zone);
  const edge = createEdge({
    settings: edgeDefaults,
    snapshot,
    policy: new AddressPolicy("origins"),
    logger: pino({ level: "silent" }),
  });
  return (await edge.listen({ host: "127.0.0.1", port: 0 })).port;
}

/** Starts one role of this benchmark as a child process, with the V8 flag that `bin/selvedge.js` sets. */
async function play(role: string, originPort: number): Promise<void> {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  process.once("SIGTERM", () => process.exit(0));
  if (role === "edge") {
    process.stdout.write(String(await startEdge(originPort)));
    return;
  }
  const server = createServer(role === "origin" ? origin() : proxyBefore(originPort));
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
}

interface Side {
  port: number;
  pids: readonly number[];
  stop(): unknown;
}

/** Compares CPU time per request through the edge with a minimal proxy of the same parts, and with nginx. */
export default async function edge(): Promise<void> {
  const self = "../edge.ts";
  const from = await startPeer(self, "origin");
  const peer = async (role: string): Promise<Side> => {
    const child = await startPeer(self, role, String(from.port));
    return { port: child.port, pids: [child.pid], stop: () => child.stop() };
  };
  const nginx = await startNginx(from.port);
  const sides = new Map([
    ["edge", await peer("edge")],
    ["bare proxy", await peer("bare")],
    ...(nginx === undefined ? [] : [["nginx", nginx] as const]),
  ]);
  const rows: (string | number)[][] = [];
  const goals: Goal[] = [];
  for (const { name, request, count, connections } of kinds) {
    const cpu = new Map([...sides.keys()].map((side) => [side, [] as number[]]));
    for (let round = -3; round < rounds; round++) {
      // Every side takes every position equally often, because the side before it affects its cost.
      const order = [...sides];
      const first = (round + order.length) % order.length;
      for (const [side, { port, pids }] of [...order.slice(first), ...order.slice(0, first)]) {
        const used = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
        const before = used();
        await load(`http://127.0.0.1:${port}`, count, connections, () => request);
        if (round >= 0) cpu.get(side)!.push((used() - before) / count); // those before are warm-up
      }
    }
    for (const [side, each] of cpu) rows.push([`${name}, ${side}`, median(each), Math.min(...each)]);
    const ratio = (to: string): number => pairedRatio(cpu.get("edge")!, cpu.get(to)!);
    goals.push(atMost(`${name}: edge / bare proxy`, ratio("bare proxy"), 1.3));
    if (nginx !== undefined) goals.push(reported(`${name}: edge / nginx`, ratio("nginx")));
  }
  printTable(["", "CPU µs each", "least"], rows);
  printGoals(goals);
  if (nginx === undefined)
    process.stdout.write("nginx is not installed (Debian package nginx-light): not compared.\n");
  for (const side of sides.values()) await side.stop();
  await from.stop();
}

async function startNginx(originPort: number): Promise<Side | undefined> {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "selvedge-nginx-"));
  const port = await freePort();
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http { access_log off; client_max_body_size 500m; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream o { server 127.0.0.1:${originPort}; keepalive 64; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering off; proxy_request_buffering off; } } }
`,
  );
  const child = spawn("nginx", ["-c", join(folder, "nginx.conf"), "-p", folder], { stdio: "ignore" });
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error("nginx ended");
    await delay(10);
  }
  const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
  const stop = async (): Promise<void> => {
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill();
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return { port, pids: [child.pid!, ...workers.trim().split(" ").map(Number)], stop };
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

const [role, originPort] = process.argv.slice(2);
if (import.meta.main && role !== undefined) await play(role, Number(originPort));
else if (import.meta.main) await edge();
