import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

/** The barest proxy from node:http to undici: headers as they come, bodies streamed. */
const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 128 });
const server = createServer((request, response) => {
  pool.dispatch(
    { method: request.method as "GET", path: request.url!, headers: request.rawHeaders, body: null },
    {
      onRequestStart(controller) {
        response.on("drain", () => controller.resume());
        response.on("close", () => controller.abort(new Error("closed")));
      },
      onResponseStart(controller, status) {
        response.writeHead(status, (controller.rawHeaders as Buffer[]).map(String));
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause();
      },
      onResponseEnd: () => void response.end(),
      onResponseError: () => void response.destroy(),
    },
  );
});
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => process.exit(0));
