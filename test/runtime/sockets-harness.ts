import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect } from "vitest";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { startHosting, type Hosting } from "./platform.ts";

/**
 * A platform and servers on this machine, to which its scripts may connect. Started before the tests of the
 * importing file.
 */
export let hosting: Hosting;
export let ports: Record<"echo" | "secure" | "starting" | "foreign" | "closed", number>;
const servers: Server[] = [];
const folder = mkdtempSync(join(tmpdir(), "selvedge-sockets-"));

/** Listens, and leaves half-open connections to `onSocket`. */
export async function listen(onSocket: (socket: Socket) => void, make = createServer): Promise<number> {
  const server = make({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}
const echo = (socket: Socket): void => void socket.pipe(socket);

beforeAll(async () => {
  const authority = openLocalAuthority(join(folder, "trusted"));
  writeFileSync(join(folder, "ca.pem"), authority.certificate);
  const { certificate: cert, privateKey: key } = authority.issue(["127.0.0.1", "localhost", "db.example"]);
  const foreign = authority.issue(["other.example"]);
  hosting = await startHosting({
    privateNetworks: "all",
    originCa: [join(folder, "ca.pem")],
    scriptSubrequestsMax: 40,
    snippetCpuMs: 50,
  });
  const tls = (pair: { cert: string; key: string }): typeof createServer =>
    ((_options: object, onSocket: (socket: Socket) => void) => createTlsServer(pair, onSocket)) as never;
  ports = {
    echo: await listen(echo),
    secure: await listen(echo, tls({ cert, key })),
    foreign: await listen(echo, tls({ cert: foreign.certificate, key: foreign.privateKey })),
    // Answers "go" to the first data, and then starts TLS.
    starting: await listen((socket) => {
      socket.once("data", () => {
        socket.pause();
        socket.write("go", () =>
          echo(new TLSSocket(socket, { isServer: true, cert, key }).on("error", () => {})),
        );
      });
    }),
    closed: await listen(() => {}),
  };
  const last = servers.pop()!;
  await new Promise((resolve) => last.close(resolve));
});
afterAll(async () => {
  for (const server of servers) server.close();
  await hosting.close(0);
  rmSync(folder, { recursive: true });
});

/** Replaces `PORT.echo` and the like by port numbers. */
const withPorts = (code: string): string =>
  code.replaceAll(/PORT\.(\w+)/g, (_, name: keyof typeof ports) => String(ports[name]));

export const scriptOf = (
  code: string,
  imports: string,
): string => `import { connect } from "cloudflare:sockets"; ${imports}
  const text = async (readable) => new Response(readable).text();
  const say = async (socket, words) => { const writer = socket.writable.getWriter(); await writer.write(new TextEncoder().encode(words)); writer.releaseLock(); };
  const failure = (promise) => promise.then((value) => "no error but " + value, ({ message }) => message);
  const thrown = (run) => { try { return "no error but " + run(); } catch (error) { return error.name + ": " + error.message; } };
  export default { async fetch(request, env, ctx) {
    const run = async () => { ${withPorts(code)} };
    try { const value = (await run()) ?? null; return value instanceof Response ? value : Response.json({ value }); }
    catch (error) { return Response.json({ thrown: error.message }); }
  } };`;
const nodeImports = `import net from "node:net"; import tls from "node:tls";`;

/** Deploys a script with this code. Returns its value, or "thrown: " and the message of its error. */
export async function run(code: string, on = hosting): Promise<unknown> {
  const metadata = { compatibility_flags: ["nodejs_compat"] };
  await on.deploy("using", { code: scriptOf(code, nodeImports), metadata });
  const { status, body } = await on.ask("using");
  expect(status, body).toBe(200);
  const answer = JSON.parse(body) as { value?: unknown; thrown?: string };
  return "thrown" in answer ? `thrown: ${answer.thrown}` : answer.value;
}
export const failed = "proxy request failed, cannot connect to the specified address";
