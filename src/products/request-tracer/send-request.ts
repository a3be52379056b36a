import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { AddressInfo } from "node:net";
import { headersOf, type AskedRequest } from "./described-request.ts";

const answerWithinMs = 10_000;
/** Headers of the connection, which this program sets itself. */
const ofConnection: ReadonlySet<string> = new Set(
  "connection expect keep-alive proxy-connection te trailer transfer-encoding upgrade".split(" "),
);

/**
 * Sends a traced request through the edge at `address` as a visitor would. Resolves with the status of the
 * response, or with undefined if there is none within ten seconds.
 */
export async function sendRequest(
  asked: AskedRequest,
  { address, port }: AddressInfo,
): Promise<number | undefined> {
  const headers = Object.entries(headersOf(asked)).filter(([name]) => !ofConnection.has(name));
  const options = {
    host: address,
    port,
    method: asked.method,
    path: asked.url.pathname + asked.url.search,
    headers: Object.fromEntries(
      headers.map(([name, value]) => [name, Buffer.from(value).toString("latin1")]),
    ),
    agent: false,
    signal: AbortSignal.timeout(answerWithinMs),
  } as const;
  return new Promise((resolve) => {
    // The edge is this program itself, so its certificate is not checked.
    const request =
      asked.url.protocol === "https:"
        ? requestHttps({ ...options, servername: asked.url.hostname, rejectUnauthorized: false })
        : requestHttp(options);
    request.on("response", (response) => {
      resolve(response.statusCode);
      request.destroy();
    });
    request.on("error", () => resolve(undefined));
    request.end(asked.body);
  });
}
