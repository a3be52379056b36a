import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp, createServer as createTcpServer, type AddressInfo } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The `cf` properties of a TLS connection, for scripts and rules. */
let server: TestServer;
let origin: Server;
let zoneId: string;
let authority: string;
const host = "www.tlscf.example";
const edgePort = (): number => Number(new URL(server.ready.edge_tls!).port);

beforeAll(async () => {
  server = await startTestServer({ edgeTlsListen: "127.0.0.1:0" });
  authority = readFileSync(server.ready.tls_authority!, "utf8");
  origin = createServer((request, response) => response.end(request.headers.host));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  zoneId = (await server.call("POST", "/zones", { name: "tlscf.example" })).body.result.id as string;
  const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true };
  await server.call("POST", `/zones/${zoneId}/dns_records`, record);
  await server.call("PATCH", `/zones/${zoneId}/settings/bot_management`, { value: "on" });
});
afterAll(async () => {
  origin.close();
  await server.close(0);
});

/** Sets rules that each change the Host at the origin when they match; the last match wins. */
async function rules(expressions: Record<string, string>): Promise<void> {
  const { port } = origin.address() as AddressInfo;
  const rules = Object.entries({ none: "true", ...expressions }).map(([name, expression]) => ({
    action: "route",
    expression,
    action_parameters: { origin: { port }, host_header: `${name}.tlscf.example` },
  }));
  const { body } = await server.call(
    "PUT",
    `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`,
    {
      rules,
    },
  );
  expect(body.errors).toEqual([]);
}

const get = (options: ConnectionOptions = {}, port = edgePort()): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername: host, ca: authority, ...options });
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("end", () => resolve(text.split("\r\n\r\n").at(-1)!));
    socket.on("error", reject);
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nuser-agent: curl/8\r\nconnection: close\r\n\r\n`);
  });

it.each<[what: string, expression: string, options?: ConnectionOptions]>([
  ["the version and the suite", 'ssl and cf.tls_version eq "TLSv1.3" and cf.tls_cipher contains "AEAD-"'],
  [
    "an older version and its suite",
    'cf.tls_version eq "TLSv1.2" and cf.tls_cipher eq "ECDHE-ECDSA-AES128-GCM-SHA256"',
    { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" },
  ],
  ["the first message", "cf.tls_client_hello_length > 200 and len(cf.tls_client_random) == 44"],
  ["its lists", "len(cf.tls_ciphers_sha1) == 28 and len(cf.tls_client_extensions_sha1_le) == 28"],
  [
    "no certificate of the visitor's",
    "not cf.tls_client_auth.cert_presented and not cf.tls_client_auth.cert_verified",
  ],
])("rules see %s", async (_what, expression, options) => {
  await rules({ seen: expression });
  expect(await get(options)).toBe("seen.tlscf.example");
});

it("rules see fingerprints of the client, which differ between HTTP versions only in the offered protocols", async () => {
  await rules({ old: 'cf.bot_management.ja4 matches "^t13d[0-9]{4}h1_[0-9a-f]{12}_[0-9a-f]{12}$"' });
  expect(await get({ ALPNProtocols: ["http/1.1"] })).toBe("old.tlscf.example");
  await rules({
    new: 'cf.bot_management.ja4 matches "^t13d[0-9]{4}h2_" and len(cf.bot_management.ja3_hash) == 32',
  });
  const session = connectHttp2(`https://${host}`, {
    createConnection: () =>
      connect({
        host: "127.0.0.1",
        port: edgePort(),
        servername: host,
        ca: authority,
        ALPNProtocols: ["h2"],
      }),
  });
  const stream = session.request({ ":path": "/", "user-agent": "curl/8" });
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk as string;
  session.close();
  expect(text).toBe("new.tlscf.example");
});

it("reads a fragmented first message", async () => {
  const splitter = createTcpServer((near) => {
    const far = connectTcp({ host: "127.0.0.1", port: edgePort(), noDelay: true });
    const split = async (): Promise<void> => {
      for await (const chunk of near as AsyncIterable<Buffer>) {
        for (let at = 0; at < chunk.length; at += 700) {
          far.write(chunk.subarray(at, at + 700));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
      }
    };
    split().catch(() => {});
    far.pipe(near);
    for (const socket of [near, far]) socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => splitter.listen(0, "127.0.0.1", resolve));
  await rules({ seen: "cf.tls_client_hello_length > 4000" });
  const ALPNProtocols = ["http/1.1", ...Array.from({ length: 60 }, (_, i) => `${i}`.padStart(100, "p"))];
  expect(await get({ ALPNProtocols }, (splitter.address() as AddressInfo).port)).toBe("seen.tlscf.example");
  splitter.close();
});

it("closes connections that do not speak TLS", async () => {
  const socket = connectTcp(edgePort(), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\n\r\n");
  socket.on("error", () => {});
  await new Promise((resolve) => socket.on("close", resolve).resume());
});

it("scripts see the same", async () => {
  const code = "export default { fetch: (request) => Response.json(request.cf) };";
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: "main.js" }));
  form.set("files", new File([code], "main.js", { type: "application/javascript+module" }));
  const headers = { authorization: `Bearer ${server.client.apiToken}` };
  await fetch(`${server.ready.api}/zones/${zoneId}/snippets/echo`, { method: "PUT", headers, body: form });
  await server.call("PUT", `/zones/${zoneId}/snippets/snippet_rules`, {
    rules: [{ snippet_name: "echo", expression: "ssl", enabled: true }],
  });
  const cf = JSON.parse((await get()).replace(/^[0-9a-f]+\r\n|\r\n0$/g, "").split("\r\n")[0]!) as Record<
    string,
    never
  >;
  expect(cf).toMatchObject({
    tlsVersion: "TLSv1.3",
    tlsCipher: expect.stringMatching(/^AEAD-/) as string,
    tlsClientHelloLength: expect.stringMatching(/^\d+$/) as string,
    tlsClientRandom: expect.stringMatching(/^[\w+/]{43}=$/) as string,
    tlsClientCiphersSha1: expect.stringMatching(/^[\w+/]{27}=$/) as string,
    tlsClientExtensionsSha1: expect.stringMatching(/^[\w+/]{27}=$/) as string,
    tlsClientExtensionsSha1Le: expect.stringMatching(/^[\w+/]{27}=$/) as string,
    tlsClientAuth: { certPresented: "0", certVerified: "NONE" },
    botManagement: {
      ja3Hash: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      ja4: expect.any(String) as string,
    },
  });
});
