import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { mkdtempSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { edgeDefaults } from "../../src/edge/http/settings.ts";
import { TlsListener } from "../../src/edge/tls/listener.ts";
import { openLocalAuthority } from "../../src/edge/tls/certificates/local-authority.ts";
import { SecureContexts } from "../../src/edge/tls/secure-contexts.ts";

/** Responds "hello" over TLS with certificates by name, through our listener (it parses the ClientHello) or node:https. */
const authority = openLocalAuthority(mkdtempSync(join(tmpdir(), "selvedge-bench-tls-")));
const hello = (_request: IncomingMessage, response: ServerResponse): void => void response.end("hello");
const print = ({ port }: AddressInfo): void => void process.stdout.write(String(port));
const contexts = new SecureContexts(authority, () => true);
if (process.argv[2] === "listener") {
  const http = createServer(hello);
  const listener = new TlsListener({
    edge: { accept: (socket) => void http.emit("connection", socket), serve: hello },
    settings: edgeDefaults,
    contextFor: (name) => contexts.contextFor(name),
    fallback: authority.issue(["localhost"]),
    logger: pino({ level: "silent" }),
  });
  print(await listener.listen({ host: "127.0.0.1", port: 0 }));
} else {
  const { certificate: cert, privateKey: key } = authority.issue(["localhost"]);
  const server = createHttpsServer(
    { cert, key, minVersion: "TLSv1.2", SNICallback: (name, done) => done(null, contexts.contextFor(name)) },
    hello,
  );
  server.listen(0, "127.0.0.1", () => print(server.address() as AddressInfo));
}
process.once("SIGTERM", () => process.exit(0));
