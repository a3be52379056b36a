import { readFileSync } from "node:fs";
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { ownerToken } from "../helpers/server.ts";

/** The code of an example in the folder beside this file. */
export const example = (name: string): string =>
  readFileSync(new URL(`examples/${name}.js`, import.meta.url), "utf8");

export interface LocalServer {
  url: string;
  port: number;
  close(): void;
}
export async function listenLocally(listener: RequestListener): Promise<LocalServer> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, port, close };
}

export interface SnippetInUse {
  name: string;
  code: string;
  expression?: string;
}

/** Creates a zone with snippets and an origin over the API. */
export async function createZone(
  api: string,
  name: string,
  originPort: number,
  snippets: readonly SnippetInUse[],
  token = ownerToken,
  account?: { id: string },
): Promise<string> {
  const call = async (method: string, path: string, body: object): Promise<{ id: string }> => {
    const isForm = body instanceof FormData;
    const response = await fetch(`${api}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(isForm ? {} : { "content-type": "application/json" }),
      },
      body: isForm ? body : JSON.stringify(body),
    });
    const answer = (await response.json()) as { success: boolean; result: { id: string }; errors: unknown };
    if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.errors)}`);
    return answer.result;
  };
  const { id } = await call("POST", "/zones", { name, ...(account && { account }) });
  const zone = `/zones/${id}`;
  await call("POST", `${zone}/dns_records`, { type: "A", name, content: "127.0.0.1", proxied: true, ttl: 1 });
  await call("PUT", `${zone}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: originPort } } }],
  });
  for (const snippet of snippets) {
    const form = new FormData();
    form.append("metadata", JSON.stringify({ main_module: "snippet.js" }));
    form.append("files", new File([snippet.code], "snippet.js", { type: "application/javascript+module" }));
    await call("PUT", `${zone}/snippets/${snippet.name}`, form);
  }
  await call("PUT", `${zone}/snippets/snippet_rules`, {
    rules: snippets.map(({ name: snippet_name, expression = "true" }) => ({
      snippet_name,
      expression,
      enabled: true,
    })),
  });
  return zone;
}

export interface ExampleRequest {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
}
export interface ExampleAnswer {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Sends a request to the edge and returns the response once its head has arrived. */
export function ask(
  edge: string,
  host: string,
  { method = "GET", path = "/", headers = {}, body }: ExampleRequest,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      `${edge}${path}`,
      { method, agent: false, headers: { host, ...headers } },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

export async function askWhole(edge: string, host: string, request: ExampleRequest): Promise<ExampleAnswer> {
  const response = await ask(edge, host, request);
  response.setEncoding("utf8");
  let body = "";
  for await (const chunk of response) body += chunk as string;
  return {
    status: response.statusCode ?? 0,
    statusText: response.statusMessage ?? "",
    headers: response.headers,
    body,
  };
}
