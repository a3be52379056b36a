import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, createServer, get, type IncomingMessage, type RequestOptions } from "node:http";
import { connect, constants } from "node:http2";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { freePort } from "../helpers/free-port.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { callerOf } from "../helpers/writes.ts";

const token = "owner-token-for-tests";
const host = "load.example";
const origin = createServer((request, response) => {
  if (request.url !== "/download") response.end("hello");
  else
    void (async () => {
      for (let part = 0; part < 20; part++) {
        response.write("part");
        await delay(100);
      }
      response.end();
    })();
});
const sockets = new WebSocketServer({ server: origin });

beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
});
afterAll(() => {
  origin.closeAllConnections();
  origin.close();
});

/** A node that proxies `host` to the origin. */
async function startNode(...args: string[]): Promise<ServerProcess> {
  const settings = ["--ephemeral", "--edge-tls-listen", "127.0.0.1:0", "--api-token", token];
  const server = await serve([...settings, ...args]);
  const call = callerOf(server.ready.api);
  const zone = (await call("POST", "/zones", { name: host })).result as { id: string };
  const record = { type: "A", name: "@", content: "127.0.0.1", proxied: true };
  await call("POST", `/zones/${zone.id}/dns_records`, record);
  const port = (origin.address() as AddressInfo).port;
  const rule = { action: "route", expression: "true", action_parameters: { origin: { port } } };
  const path = `/zones/${zone.id}/rulesets/phases/http_request_origin/entrypoint`;
  expect((await call("PUT", path, { rules: [rule] })).status).toBe(200);
  return server;
}

/** The body of an answer. Rejects when the connection is reset before its end. */
async function fetchFrom(edge: string, path: string, options: RequestOptions): Promise<string> {
  const request = get(`${edge}${path}`, { ...options, headers: { host } });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return (await response.setEncoding("utf8").toArray()).join("");
}

/** Requests without a pause, until the listener refuses connections. Anything else that fails is in `failures`. */
async function load(visit: () => Promise<string>, failures: unknown[]): Promise<number> {
  for (let answered = 0; ; answered++) {
    try {
      expect(await visit()).toBe("hello");
    } catch (error) {
      if ((error as { code?: string }).code === "ECONNREFUSED") return answered;
      failures.push(error);
      return answered;
    }
  }
}

/** Requests over HTTP/2, on a new connection once the server asks for one. */
function overHttp2(url: string): () => Promise<string> {
  let session: ReturnType<typeof connect> | undefined;
  return async function visit(): Promise<string> {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(url, { rejectUnauthorized: false, servername: host });
      await once(session, "connect");
    }
    const stream = session.request({ ":authority": host, ":path": "/" });
    try {
      return (await stream.setEncoding("utf8").toArray()).join("");
    } catch (error) {
      // The server has not processed it, so clients repeat it on another connection (RFC 9113, 8.7).
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return visit();
      throw error;
    }
  };
}

it("a stop under load resets no connection, closes WebSockets with 1001 and finishes downloads", async () => {
  // One process cannot close a listener between two connections: the system may complete some in the microseconds
  // after the last was accepted, and resets them. A stop that closes at once resets some every time.
  let failures = await stopUnderLoad();
  for (let attempt = 2; failures.length > 0 && attempt <= 3; attempt++) failures = await stopUnderLoad();
  expect(failures).toEqual([]);
});

/** Stops a node under load, and returns the failures of the load. */
async function stopUnderLoad(): Promise<unknown[]> {
  const healthPort = await freePort();
  // The lame duck is longer than the calls after the signal may take.
  const server = await startNode("--health-listen", `127.0.0.1:${healthPort}`, "--lame-duck-seconds", "4");
  const { edge, edge_tls: tls } = server.ready;
  const ready = async (): Promise<[number, unknown]> => {
    const answer = await fetch(`http://127.0.0.1:${healthPort}/readyz`);
    return [answer.status, await answer.json()];
  };
  expect(await ready()).toEqual([200, { status: "ok" }]);

  const socket = new WebSocket(edge.replace("http", "ws"), { headers: { host } });
  await once(socket, "open");
  socket.send("echo");
  await once(socket, "message");
  const closed = once(socket, "close") as Promise<[number]>;

  const failures: unknown[] = [];
  const agent = new Agent({ keepAlive: true });
  const counts: { answered: number }[] = [];
  const counted = (visit: () => Promise<string>): (() => Promise<string>) => {
    const count = { answered: 0 };
    counts.push(count);
    return async () => {
      const body = await visit();
      count.answered++;
      return body;
    };
  };
  const loads = [
    load(
      counted(async () => fetchFrom(edge, "/", { agent: false })),
      failures,
    ),
    load(
      counted(async () => fetchFrom(edge, "/", { agent: false })),
      failures,
    ),
    load(
      counted(async () => fetchFrom(edge, "/", { agent })),
      failures,
    ),
    load(counted(overHttp2(tls!)), failures),
  ];
  const download = fetchFrom(edge, "/download", { agent });
  const everyLoadIsAnswered = (): void =>
    expect(Math.min(...counts.map(({ answered }) => answered))).toBeGreaterThan(0);
  await vi.waitFor(everyLoadIsAnswered);

  server.process.kill("SIGTERM");
  await vi.waitFor(async () =>
    expect(await ready()).toEqual([503, { status: "unavailable", not_ready: ["stopping"] }]),
  );
  expect((await fetch(`http://127.0.0.1:${healthPort}/healthz`)).status).toBe(200);
  // New connections are still served, for one answer each.
  const visited = await fetch(`${new URL(server.ready.api).origin}/healthz`);
  expect([visited.status, visited.headers.get("connection")]).toEqual([200, "close"]);

  expect(await download).toBe("part".repeat(20));
  expect((await closed)[0]).toBe(1001);
  const answered = await Promise.all(loads);
  expect(Math.min(...answered)).toBeGreaterThan(0);
  expect(await server.exited).toBe(0);
  expect(server.stderr()).not.toContain("still open");
  return failures;
}

/** A new self-signed certificate for `host` in `a.pem` and `a.key`. */
function issue(folder: string, name: string): void {
  const args = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name}`;
  const files = ["-keyout", join(folder, "a.key"), "-out", join(folder, "a.pem")];
  execFileSync("openssl", [...args.split(" "), "-addext", `subjectAltName=DNS:${host}`, ...files], {
    stdio: "ignore",
  });
}

/** The common name of the certificate that a visitor of `host` gets. */
async function servedName(edgeTls: string): Promise<string> {
  const socket = connectTls({
    port: Number(new URL(edgeTls).port),
    rejectUnauthorized: false,
    servername: host,
  });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
}

it("SIGHUP reads certificates and the configuration again, a hundred times under load", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "selvedge.toml");
  writeFileSync(file, 'colo = "AAA"\n');
  issue(folder, "one.example");
  const pair = `${join(folder, "a.pem")}:${join(folder, "a.key")}`;
  const server = await startNode("--config", file, "--tls-certificates", pair);
  const descriptors = (): number => readdirSync(`/proc/${server.process.pid}/fd`).length;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const failures: unknown[] = [];
  const visits = [load(async () => fetchFrom(server.ready.edge, "/", { agent }), failures)];
  visits.push(load(async () => fetchFrom(server.ready.edge, "/", { agent: false }), failures));
  expect(await servedName(server.ready.edge_tls!)).toBe("one.example");
  await fetchFrom(server.ready.edge, "/", { agent });
  const before = descriptors();

  issue(folder, "two.example");
  writeFileSync(file, 'colo = "BBB"\nlame-duck-seconds = 1\n');
  for (let signal = 0; signal < 100; signal++) {
    server.process.kill("SIGHUP");
    await delay(5);
  }
  await vi.waitFor(() => expect(server.stderr()).toContain('"needs_restart":["lame-duck-seconds","colo"]'));
  // Without the signal, the files are looked at each ten seconds.
  expect(await servedName(server.ready.edge_tls!)).toBe("two.example");
  writeFileSync(file, 'colo = "wrong"\n');
  server.process.kill("SIGHUP");
  await vi.waitFor(() => expect(server.stderr()).toContain("three letters"));
  expect(failures).toEqual([]);
  await vi.waitFor(() => expect(Math.abs(descriptors() - before)).toBeLessThan(5));
  server.process.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(Math.min(...(await Promise.all(visits)))).toBeGreaterThan(0);
});

it("a second signal ends the process at once", async () => {
  const server = await serve(["--ephemeral", "--lame-duck-seconds", "600"]);
  server.process.kill("SIGTERM");
  await vi.waitFor(() => expect(server.stderr()).toContain("stopping"));
  server.process.kill("SIGTERM");
  expect(await server.exited).toBe(1);
});

it("a node under the wrapper stops when the wrapper is killed, and removes its ready file", async () => {
  const readyFile = join(temporaryFolder(), "ready.json");
  // The wrapper runs only under an older Node.
  const older = `Object.defineProperty(process.versions, "node", { value: "20.0.0" })`;
  const listen = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
  const wrapper = spawn(
    process.execPath,
    [
      ...["--import", `data:text/javascript,${encodeURIComponent(older)}`, "bin/selvedge.js", "serve"],
      ...["--ephemeral", "--ready-file", readyFile, ...listen],
    ],
    { stdio: "ignore" },
  );
  await vi.waitFor(() => expect(existsSync(readyFile)).toBe(true));
  wrapper.kill("SIGKILL");
  await vi.waitFor(() => expect(existsSync(readyFile)).toBe(false));
});

it.each([
  ["npm is killed", "npm", ["start"]],
  ["its terminal is closed, with its log", "script", ["--quiet", "--command", "npm start", "/dev/null"]],
])("a node stops when %s, and removes its ready file", async (_, program, args) => {
  const folder = temporaryFolder();
  const readyFile = join(folder, "ready.json");
  const listen = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
  const start = [process.execPath, resolve("bin/selvedge.js"), "serve", "--ephemeral", ...listen];
  const scripts = { start: [...start, "--ready-file", readyFile].join(" ") };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts }));
  const wrapper = spawn(program, args, { cwd: folder, stdio: "ignore" });
  await vi.waitFor(() => expect(existsSync(readyFile)).toBe(true));
  const { pid } = JSON.parse(readFileSync(readyFile, "utf8")) as { pid: number };
  wrapper.kill("SIGKILL");
  await vi.waitFor(() => expect(existsSync(readyFile)).toBe(false));
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"));
});
