import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { extname } from "node:path";
import { WebSocket } from "ws";
import type { Ready } from "../../src/ready.ts";
import { askEdge, type AskOptions, type EdgeResponse } from "../helpers/edge-request.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";

export interface ScriptUpload {
  /** The source of the main module, or all modules by name, the main one first. */
  code: string | Record<string, string | Uint8Array>;
  bindings?: readonly Record<string, unknown>[];
  metadata?: Record<string, unknown>;
}

export type { AskOptions, EdgeResponse };

/** Requests to a running platform. */
export interface Calls {
  account: string;
  /** Uploads a script of the account, which serves the next request. */
  deploy(name: string, upload: ScriptUpload | string): Promise<void>;
  deployCustomer(namespace: string, name: string, upload: ScriptUpload | string): Promise<void>;
  createNamespace(name: string, more?: Record<string, unknown>): Promise<void>;
  createKv(title: string, values?: Record<string, string>): Promise<string>;
  /** Creates a zone whose origin is a program on this machine. */
  createZone(name: string, originPort: number): Promise<string>;
  /** Requests a script's own host name. */
  ask(script: string, path?: string, options?: AskOptions): Promise<EdgeResponse>;
  /** Requests any host. */
  askHost(host: string, path?: string, options?: AskOptions): Promise<EdgeResponse>;
  /** Opens a WebSocket to a script's own host name, or to another. */
  connect(script: string, path?: string, host?: string): WebSocket;
  hostOf(script: string): string;
}

const contentTypes: Record<string, string> = {
  ".js": "application/javascript+module",
  ".mjs": "application/javascript+module",
  ".cjs": "application/javascript",
  ".txt": "text/plain",
  ".bin": "application/octet-stream",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

const main = "index.js";

/** The multipart form of an upload. */
export function uploadForm(given: ScriptUpload | string): FormData {
  const { code, bindings = [], metadata = {} } = typeof given === "string" ? { code: given } : given;
  const modules = typeof code === "string" ? { [main]: code } : code;
  const form = new FormData();
  const first = Object.keys(modules)[0];
  const description = { main_module: first, compatibility_date: "2026-11-01", bindings, ...metadata };
  form.set("metadata", new Blob([JSON.stringify(description)], { type: "application/json" }));
  for (const [name, source] of Object.entries(modules))
    form.set(name, new File([source as string], name, { type: contentTypes[extname(name)]! }));
  return form;
}

/** The multipart form of a preview of one module. */
export function previewForm(code: string, metadata: object, request: object = {}): FormData {
  const form = uploadForm(code);
  const asked = { url: "https://preview.example/", ...request };
  form.set("metadata", JSON.stringify({ main_module: main, request: asked, ...metadata }));
  return form;
}

export type Hosting = TestServer & Calls;

/** Starts a platform in this process. */
export async function startHosting(settings: Parameters<typeof startTestServer>[0] = {}): Promise<Hosting> {
  const server = await startTestServer(settings);
  return { ...server, ...(await callsOf(server.ready, ownerToken)) };
}

/** The calls for a platform that runs anywhere. */
export async function callsOf(ready: Ready, token: string): Promise<Calls> {
  const account = ready.account_id;
  const authorization = `Bearer ${token}`;
  const upload = async (path: string, given: ScriptUpload | string): Promise<void> => {
    const body = uploadForm(given);
    const response = await fetch(`${ready.api}${path}`, { method: "PUT", headers: { authorization }, body });
    const answer = await response.text();
    if (!response.ok) throw new Error(`PUT ${path}: ${answer}`);
  };
  const succeed = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${ready.api}${path}`, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { success: boolean; result: T; errors: unknown };
    if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.errors)}`);
    return answer.result;
  };
  const { subdomain } = await succeed<{ subdomain: string }>("GET", `/accounts/${account}/workers/subdomain`);
  const hostOf = (script: string): string => `${script}.${subdomain}.workers.localhost`;
  const askHost: Calls["askHost"] = async (host, path, options) => askEdge(ready.edge, host, path, options);
  return {
    account,
    hostOf,
    askHost,
    deploy: async (name, given) => upload(`/accounts/${account}/workers/scripts/${name}`, given),
    deployCustomer: async (namespace, name, given) =>
      upload(`/accounts/${account}/workers/dispatch/namespaces/${namespace}/scripts/${name}`, given),
    async createNamespace(name, more = {}) {
      await succeed("POST", `/accounts/${account}/workers/dispatch/namespaces`, { name });
      if (Object.keys(more).length > 0)
        await succeed("PATCH", `/accounts/${account}/workers/dispatch/namespaces/${name}`, more);
    },
    async createKv(title, values = {}) {
      const path = `/accounts/${account}/storage/kv/namespaces`;
      const { id } = await succeed<{ id: string }>("POST", path, { title });
      const entries = Object.entries(values).map(([key, value]) => ({ key, value }));
      if (entries.length > 0) await succeed("PUT", `${path}/${id}/bulk`, entries);
      return id;
    },
    async createZone(name, originPort) {
      const { id } = await succeed<{ id: string }>("POST", "/zones", { name });
      for (const host of [name, `*.${name}`])
        await succeed("POST", `/zones/${id}/dns_records`, {
          type: "A",
          name: host,
          content: "127.0.0.1",
          proxied: true,
          ttl: 1,
        });
      await succeed("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
        rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: originPort } } }],
      });
      return id;
    },
    ask: async (script, path, options) => askHost(hostOf(script), path, options),
    connect: (script, path = "/", host = hostOf(script)) =>
      new WebSocket(`${ready.edge.replace("http", "ws")}${path}`, { headers: { host } }),
  };
}

export interface Outside {
  url: string;
  port: number;
  server: Server;
  /** The requests received, as "METHOD path". */
  seen: string[];
  close(): Promise<void>;
}

/** Starts a server for scripts to fetch from. */
export async function startOutside(listener: RequestListener): Promise<Outside> {
  const seen: string[] = [];
  const server = createServer((incoming, response) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    listener(incoming, response);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket.on("close", () => sockets.delete(socket)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server,
    seen,
    async close() {
      for (const socket of sockets) socket.destroy(); // WebSockets too
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The next message of a WebSocket, or how it closed. */
export const nextMessage = (socket: WebSocket): Promise<string> =>
  new Promise((resolve, reject) => {
    socket.once("message", (data: Buffer) => resolve(data.toString()));
    socket.once("close", (code) => resolve(`closed with ${code}`));
    socket.once("error", reject);
  });
