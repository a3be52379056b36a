import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An origin that responds with 8 kB, and at /counts with its number of requests by host. */
const counts: Record<string, number> = {};
const body = Buffer.alloc(8192, "x");
const server = createServer((request, response) => {
  if (request.url === "/counts") {
    response.end(JSON.stringify(counts));
    return;
  }
  const host = request.headers.host ?? "";
  counts[host] = (counts[host] ?? 0) + 1;
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": body.length });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
