import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Plain node:http that answers /N with the same N bytes of text from memory. */
const bodies = new Map<string, Buffer>();
const server = createServer((request, response) => {
  let body = bodies.get(request.url!);
  if (body === undefined) bodies.set(request.url!, (body = Buffer.alloc(Number(request.url!.slice(1)), "x")));
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8", "content-length": body.length });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
