import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
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
import { proxiedZone } from "./lib/proxied-zone.ts";

/*
 * Compares CPU time per proxied request with a minimal Node proxy, and with nginx if installed: small and large bodies
 * on keep-alive connections, and small bodies on a new connection each. All sides reuse connections to the origin.
 */
const rounds = 9;
const host = "www.bench.example";
interface Kind {
  count: number;
  /** Maximum ratio to the bare proxy. */
  bareMax: number;
  run: (url: string, count: number) => Promise<number>;
}
const kept =
  (path: string, connections: number): Kind["run"] =>
  (url, count) =>
    load(url, count, connections, () => ({ method: "GET", path, headers: { host } }));
const kinds: Record<string, Kind> = {
  "1 KB": { count: 3000, bareMax: 0.9, run: kept("/1024", 16) },
  "10 MB": { count: 12, bareMax: 0.8, run: kept("/10485760", 2) },
  "1 KB, new connection": { count: 1500, bareMax: 0.8, run: async (url, count) => visits(url, count, 16) },
};

const origin = await startPeer("origin.ts");
const bare = await startPeer("bare-proxy.ts", String(origin.port));
const selvedge = await startSelvedge();
await proxiedZone(selvedge.ready, "bench.example", origin.port);
const nginx = await startNginx(origin.port);

const sides: Record<string, { url: string; pids: number[] }> = {
  selvedge: { url: selvedge.ready.edge, pids: [selvedge.pid] },
  bare: { url: `http://127.0.0.1:${bare.port}`, pids: [bare.pid] },
  ...(nginx === undefined ? {} : { nginx: { url: nginx.url, pids: nginx.pids } }),
};
const goals: Goal[] = [];
const rows: (string | number)[][] = [];
for (const [kind, { count, bareMax, run }] of Object.entries(kinds)) {
  const cpu: Record<string, number[]> = Object.fromEntries(Object.keys(sides).map((side) => [side, []]));
  const perSecond: Record<string, number[]> = Object.fromEntries(
    Object.keys(sides).map((side) => [side, []]),
  );
  for (let round = -2; round < rounds; round++) {
    const order = Object.entries(sides);
    for (const [side, { url, pids }] of round % 2 === 0 ? order : order.toReversed()) {
      const used = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const before = used();
      const seconds = await run(url, count);
      if (round < 0) continue; // warm-up
      cpu[side]!.push((used() - before) / count);
      perSecond[side]!.push(count / seconds);
    }
  }
  for (const side of Object.keys(sides))
    rows.push([`${kind}, ${side}`, median(perSecond[side]!), median(cpu[side]!)]);
  goals.push(
    atMost(
      `CPU per ${kind} request, Selvedge / bare proxy`,
      pairedRatio(cpu["selvedge"]!, cpu["bare"]!),
      bareMax,
    ),
  );
  if (nginx !== undefined)
    goals.push(
      reported(`CPU per ${kind} request, Selvedge / nginx`, pairedRatio(cpu["selvedge"]!, cpu["nginx"]!)),
    );
}
printTable(["", "per second", "CPU µs each"], rows);
printGoals(goals);
if (nginx === undefined)
  process.stdout.write("nginx is not installed (Debian package nginx-light): not compared.\n");
nginx?.stop();
await selvedge.stop();
await bare.stop();
await origin.stop();

/** Sends each request on a new connection. Resolves with the seconds it took. */
async function visits(url: string, count: number, atOnce: number): Promise<number> {
  const { port, hostname } = new URL(url);
  const request = `GET /1024 HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`;
  let left = count;
  const start = performance.now();
  const visit = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let bytes = 0;
      const socket = connect(Number(port), hostname);
      socket.on("data", (chunk) => (bytes += chunk.length)).on("error", reject);
      socket.on("close", () => (bytes > 1024 ? resolve() : reject(new Error("the answer is not complete"))));
      socket.write(request);
    });
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await visit();
    }),
  );
  return (performance.now() - start) / 1000;
}

async function startNginx(
  originPort: number,
): Promise<{ url: string; pids: number[]; stop(): void } | undefined> {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "selvedge-nginx-"));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream o { server 127.0.0.1:${originPort}; keepalive 64; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering off; } } }
`,
  );
  const child = spawn("nginx", ["-c", join(folder, "nginx.conf"), "-p", folder], { stdio: "ignore" });
  await delay(500);
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number);
  return { url: `http://127.0.0.1:${port}`, pids: [child.pid!, ...children], stop: () => void child.kill() };
}
