import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:tls";
import { openLocalAuthority } from "../src/edge/tls/certificates/local-authority.ts";
import { ends, startPeer } from "./lib/child.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  type Goal,
} from "./lib/measure.ts";

/*
 * Compares CPU time of a new TLS connection with one request, with a full handshake and with a resumed session: our
 * listener, which parses the ClientHello, against node:https, and nginx if installed.
 */
const rounds = 15;
const count = 300;
const atOnce = 8;
const servername = "www.tls.example";
interface Side {
  port: number;
  pids: readonly number[];
  stop: () => unknown;
}
const peer = async (kind: string): Promise<Side> => {
  const child = await startPeer("tls-server.ts", kind);
  return { port: child.port, pids: [child.pid], stop: async () => child.stop() };
};
const nginx = await startNginx();
const sides: Record<string, Side> = {
  listener: await peer("listener"),
  https: await peer("https"),
  ...(nginx === undefined ? {} : { nginx }),
};

/** Sends one request. Resolves with a session to resume, if the server offers one. */
const visit = (port: number, session?: Buffer): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    let offered: Buffer | undefined;
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername,
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
      ...(session === undefined ? {} : { session }),
    });
    socket.on("session", (each) => (offered = each));
    socket.on("secureConnect", () => {
      if (session !== undefined && !socket.isSessionReused()) reject(new Error("the session is not resumed"));
      socket.write(`GET / HTTP/1.1\r\nhost: ${servername}\r\nconnection: close\r\n\r\n`);
    });
    socket.resume().on("end", () => resolve(offered));
    socket.on("error", reject);
  });

async function load(port: number, session: Buffer | undefined): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await visit(port, session);
    }),
  );
}

const goals: Goal[] = [];
for (const [kind, nginxMax] of [
  ["full", 2],
  ["resumed", 2.5],
] as const) {
  const cpu: Record<string, number[]> = Object.fromEntries(Object.keys(sides).map((side) => [side, []]));
  const sessions: Record<string, Buffer | undefined> = {};
  for (const [name, { port }] of Object.entries(sides)) {
    if (kind === "full") continue;
    sessions[name] = await visit(port);
    if (sessions[name] === undefined) throw new Error(`${name} offers no session`);
  }
  for (let round = -2; round < rounds; round++) {
    const order = Object.entries(sides);
    for (const [name, { pids, port }] of round % 2 === 0 ? order : order.toReversed()) {
      const used = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const before = used();
      await load(port, sessions[name]);
      if (round >= 0) cpu[name]!.push((used() - before) / count);
    }
  }
  printTable(
    [`${kind} handshake`, "CPU µs for each connection"],
    Object.entries(cpu).map(([name, values]) => [name, median(values)]),
  );
  const { listener = [], https = [], nginx: peers } = cpu;
  goals.push(atMost(`CPU of a ${kind} handshake, listener / node:https`, pairedRatio(listener, https), 1.1));
  if (peers !== undefined)
    goals.push(
      atMost(`CPU of a ${kind} handshake, listener / nginx`, pairedRatio(listener, peers), nginxMax),
    );
}
printGoals(goals);
for (const side of Object.values(sides)) await side.stop();

async function startNginx(): Promise<Side | undefined> {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "selvedge-nginx-"));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const { certificate, privateKey } = openLocalAuthority(folder).issue([servername]);
  writeFileSync(join(folder, "site.pem"), certificate);
  writeFileSync(join(folder, "site.key"), privateKey);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(" ");
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http { access_log off; ${temporary}
  server { listen 127.0.0.1:${port} ssl; server_name ${servername}; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate ${folder}/site.pem; ssl_certificate_key ${folder}/site.key; location / { return 200 hello; } } }
`,
  );
  const child = ends(spawn("nginx", ["-c", join(folder, "nginx.conf"), "-p", folder], { stdio: "ignore" }));
  await delay(500);
  const workers = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ");
  return { port, pids: [child.pid!, ...workers.map(Number)], stop: () => child.kill() };
}
