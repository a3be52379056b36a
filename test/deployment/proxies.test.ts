import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { once } from "node:events";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { describePrograms } from "../clients/programs/describe.ts";
import { debian, environmentOf } from "../clients/programs/packages.ts";
import { blocksOf } from "../helpers/blocks.ts";
import { freePort } from "../helpers/free-port.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";

/** The configurations of docs/reverse-proxy.md, with Debian's programs in front of a real platform. */
const script = `export default {
  async fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.addEventListener("message", ({ data }) => server.send("echo " + data));
      return new Response(null, { status: 101, webSocket: client });
    }
    const { protocol, hostname } = new URL(request.url);
    const bytes = (await request.arrayBuffer()).byteLength;
    return Response.json({ protocol, hostname, bytes, client: request.headers.get("cf-connecting-ip") });
  },
};`;

let server: TestServer;
const hosts: string[] = [];
beforeAll(async () => {
  server = await startTestServer({ edgeTlsListen: "127.0.0.1:0", trustedProxies: ["127.0.0.1"] });
  const account = `/accounts/${server.ready.account_id}/workers`;
  const { subdomain } = (await server.call("GET", `${account}/subdomain`)).body.result as {
    subdomain: string;
  };
  for (const name of ["one", "two"]) {
    const form = new FormData();
    form.set("metadata", JSON.stringify({ main_module: "a.mjs", compatibility_date: "2026-11-01" }));
    form.set("a.mjs", new File([script], "a.mjs", { type: "application/javascript+module" }));
    const headers = { authorization: `Bearer ${ownerToken}` };
    const url = `${server.ready.api}${account}/scripts/${name}`;
    expect((await fetch(url, { method: "PUT", headers, body: form })).status).toBe(200);
    hosts.push(`${name}.${subdomain}.workers.localhost`);
  }
});
afterAll(async () => server.close(0));

/** Each program: its file in the page, how it is started with that file, and what the file has in place of the page's ports. */
const programs = {
  nginx: {
    file: "nginx.conf",
    args: ["-e", "stderr", "-g", "daemon off;", "-c"],
    localized: (text: string, own: string, [port, apiPort]: readonly number[]) =>
      text
        .replace("listen 443", `listen 127.0.0.1:${port}`)
        .replace("listen 8444", `listen 127.0.0.1:${apiPort}`)
        // Debian's program would write below /var.
        .replace("events {}", `events {}\npid ${own}/pid;`)
        .replace("http {", `http {\naccess_log off;\n${nginxPaths(own)}`),
  },
  caddy: {
    file: "caddy.conf",
    args: ["run", "--adapter", "caddyfile", "--config"],
    localized: (text: string, _own: string, [port]: readonly number[]) =>
      text.replace("https://:443", `https://:${port}`).replace("{\n", "{\n  default_bind 127.0.0.1\n"),
  },
};
const nginxPaths = (own: string): string =>
  ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((each) => `${each}_temp_path ${own}/${each};`)
    .join("\n");
const visitorAddress = "127.0.0.2";

for (const [name, { file, args, localized }] of Object.entries(programs))
  describePrograms(`${name} in front of the edge`, [debian(name)], (folder) => {
    let proxy: ChildProcess;
    let port = 0;
    let apiPort = 0;
    let output = "";
    beforeAll(async () => {
      const own = temporaryFolder();
      [port, apiPort] = [await freePort(), await freePort()];
      const pair = openLocalAuthority(own).issue(hosts);
      writeFileSync(join(own, "visitors.pem"), pair.certificate);
      writeFileSync(join(own, "visitors.key"), pair.privateKey);
      const page = blocksOf("docs/reverse-proxy.md").find(({ use }) => use === file)!.code;
      const config = page
        .replaceAll("/etc/nginx/", `${own}/`)
        .replaceAll("127.0.0.1:8443", new URL(server.ready.edge_tls!).host)
        .replaceAll("127.0.0.1:8787", new URL(server.ready.api).host);
      writeFileSync(join(own, file), localized(config, own, [port, apiPort]));
      const environment = { ...process.env, ...environmentOf(folder), HOME: own };
      proxy = spawn(name, [...args, join(own, file)], {
        env: environment,
        stdio: ["ignore", "pipe", "pipe"],
      });
      for (const stream of [proxy.stdout!, proxy.stderr!])
        stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
      await vi.waitFor(async () => {
        expect(proxy.exitCode, output).toBeNull();
        const socket = connect(port, "127.0.0.1");
        await once(socket, "connect");
        socket.destroy();
      });
    });
    afterAll(async () => {
      const exited = once(proxy, "exit");
      proxy.kill("SIGTERM");
      await exited;
    });

    /** The certificate of the page's example is not what is tested here. */
    const options = (host: string): object => ({
      servername: host,
      rejectUnauthorized: false,
      localAddress: visitorAddress,
    });
    async function ask(host: string, headers: Record<string, string> = {}, body = ""): Promise<object> {
      const outgoing = request(`https://127.0.0.1:${port}/`, {
        method: body === "" ? "GET" : "POST",
        headers: { host, ...headers },
        ...options(host),
      });
      outgoing.end(body);
      const [response] = (await once(outgoing, "response")) as [
        NodeJS.ReadableStream & { statusCode: number },
      ];
      let text = "";
      for await (const chunk of response) text += String(chunk);
      expect([response.statusCode, text.slice(0, 300)]).toEqual([200, text.slice(0, 300)]);
      return JSON.parse(text) as object;
    }

    it("passes hosts, the scheme and the client's address on, and a visitor cannot forge it", async () => {
      const expected = { protocol: "https:", bytes: 0, client: visitorAddress };
      for (const hostname of hosts) {
        expect(await ask(hostname)).toEqual({ ...expected, hostname });
        const forged = { "x-forwarded-for": "198.51.100.7", "cf-connecting-ip": "198.51.100.8" };
        expect(await ask(hostname, forged)).toEqual({ ...expected, hostname });
      }
    });

    it("passes a body of three megabytes", async () => {
      expect(await ask(hosts[0]!, {}, "x".repeat(3_000_000))).toMatchObject({ bytes: 3_000_000 });
    });

    it("passes WebSockets", async () => {
      const socket = new WebSocket(`wss://127.0.0.1:${port}/`, {
        headers: { host: hosts[0]! },
        ...options(hosts[0]!),
      });
      await once(socket, "open");
      socket.send("hello");
      const [data] = (await once(socket, "message")) as [Buffer];
      expect(data.toString()).toBe("echo hello");
      socket.close();
      await once(socket, "close");
    });

    if (name === "nginx")
      it("encrypts the API", async () => {
        const outgoing = request(`https://127.0.0.1:${apiPort}/client/v4/user`, {
          headers: { authorization: `Bearer ${ownerToken}` },
          rejectUnauthorized: false,
        });
        outgoing.end();
        const [response] = (await once(outgoing, "response")) as [
          NodeJS.ReadableStream & { statusCode: number },
        ];
        response.resume();
        expect(response.statusCode).toBe(200);
      });
  });
