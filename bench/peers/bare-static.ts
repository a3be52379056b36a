import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Plain node:http: bytes from memory at /memory, the same with If-None-Match as 304, and a file as a stream at /stream. */
const [path, headersText] = process.argv.slice(2) as [string, string];
const headers = JSON.parse(headersText) as Record<string, string>;
const { readFileSync } = await import("node:fs");
const bytes = readFileSync(path);
const server = createServer((request, response) => {
  if (request.url === "/memory") {
    response.writeHead(200, { ...headers, "content-length": bytes.length });
    response.end(bytes);
  } else {
    response.writeHead(200, { ...headers, "content-length": bytes.length });
    createReadStream(path).pipe(response);
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
