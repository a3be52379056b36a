import type { IncomingMessage, RequestListener } from "node:http";
import type { Dispatcher, Pool } from "undici";

/** Makes the headers and the body of the request to the origin. By default, the visitor's headers and no body. */
type Rewrite = (request: IncomingMessage) => Pick<Dispatcher.DispatchOptions, "headers" | "body">;

const asItCame: Rewrite = ({ rawHeaders, headers }) => ({
  headers: headers.connection === "close" ? withoutConnection(rawHeaders) : rawHeaders,
  body: null,
});

/** Without the headers that concern one connection, so that a visitor who closes theirs leaves the origin's open. */
const withoutConnection = (rawHeaders: readonly string[]): string[] =>
  rawHeaders.filter((_, i) => !/^(connection|keep-alive)$/i.test(rawHeaders[i - (i % 2)]!));

/** A minimal proxy from node:http to undici that streams responses with unchanged headers. */
export const bareProxy =
  (pool: Pool, rewrite: Rewrite = asItCame): RequestListener =>
  (request, response) => {
    pool.dispatch(
      { method: request.method as "GET", path: request.url!, ...rewrite(request) },
      {
        onRequestStart(controller) {
          response.on("drain", () => controller.resume());
          response.on("close", () => controller.abort(new Error("closed")));
        },
        onResponseStart(controller, status) {
          const headers = (controller.rawHeaders as Buffer[]).map(String);
          response.writeHead(status, response.shouldKeepAlive ? headers : withoutConnection(headers));
        },
        onResponseData(controller, chunk) {
          if (!response.write(chunk)) controller.pause();
        },
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  };
