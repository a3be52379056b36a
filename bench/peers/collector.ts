import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An OpenTelemetry collector that accepts and discards everything. */
const server = createServer((request, response) => {
  const type = request.headers["content-type"] ?? "application/json";
  // An empty answer means in both encodings that all spans were accepted.
  request.resume().on("end", () => response.writeHead(200, { "content-type": type }).end());
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
