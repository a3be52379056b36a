import type { IncomingMessage, RequestListener } from "node:http";
import type { Dispatcher, Pool } from "undici";

/** Makes the headers and the body of the request to the origin. By default, the headers as they came and no body. */
type Rewrite = (request: IncomingMessage) => Pick<Dispatcher.DispatchOptions, "headers" | "body">;

const asItCame: Rewrite = ({ rawHeaders }) => ({ headers: rawHeaders, body: null });

/** The barest proxy from node:http to undici: answers are streamed, with their headers as they come. */
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
          response.writeHead(status, (controller.rawHeaders as Buffer[]).map(String));
        },
        onResponseData(controller, chunk) {
          if (!response.write(chunk)) controller.pause();
        },
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  };
