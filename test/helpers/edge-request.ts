import { request, type IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";

export interface AskOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array | Readable;
}
export interface EdgeResponse {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** One request at the edge, for any host: `fetch` would not let the Host header be chosen. */
export function askEdge(
  edge: string,
  host: string,
  path = "/",
  { method = "GET", headers = {}, body }: AskOptions = {},
): Promise<EdgeResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${edge}${path}`,
      { method, headers: { host, ...headers }, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            statusText: response.statusMessage ?? "",
            headers: response.headers,
            body: text,
          }),
        );
      },
    );
    outgoing.on("error", reject);
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) outgoing.end(body);
    else body.pipe(outgoing);
  });
}

/** The same without a body. */
export const requestEdge = async (
  edge: string,
  host: string,
  path = "/",
  headers: Record<string, string> = {},
  method = "GET",
): Promise<EdgeResponse> => askEdge(edge, host, path, { method, headers });
