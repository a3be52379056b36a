import { request, type IncomingHttpHeaders } from "node:http";

export interface Visit {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** One request at the edge, for any host: `fetch` would not let the Host header be chosen. */
export function visit(
  edge: string,
  host: string,
  path = "/",
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Visit> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${edge}${path}`,
      { method, headers: { host, ...headers }, agent: false },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (body += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
        response.on("error", reject);
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}
