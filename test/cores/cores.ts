import { readdirSync, readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import type { Supervised } from "../../src/platform/processes/supervised.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { callsOf, type Calls } from "../runtime/platform.ts";

export const coresToken = "cores-test-token";

/** A node with several processes, and the origin of its zone `cores.example`. */
export interface Cores extends AsyncDisposable {
  server: ServerProcess;
  calls: Calls;
  zoneId: string;
  originPort: number;
  /** The data folder. */
  data: string;
  /** The process ids of one kind of process that are there now. */
  pids(role: Supervised["role"]): number[];
  /** Adds a name to the zone. Resolves when the API has answered. */
  addName(name: string): Promise<void>;
  removeName(name: string): Promise<void>;
  call(method: string, path: string, body?: unknown): Promise<{ status: number; result: never }>;
}

/**
 * Starts a node with so many edge processes. Its origin answers "whole", and echoes messages of WebSockets. A second node
 * on the same database shares the zone of the first.
 */
export async function startCores(
  edges: number,
  settings: readonly string[] = [],
  program?: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<Cores> {
  const origin = createServer((_request, response) => response.end("whole"));
  const webSockets = new WebSocketServer({ server: origin });
  webSockets.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
  const originPort = await listening(origin);
  const data = temporaryFolder();
  const server = await serve(
    ["--data-dir", data, "--edge-processes", String(edges), ...settings],
    { SELVEDGE_API_TOKEN: coresToken, SELVEDGE_API_RATE_LIMIT: "0", ...environment },
    [],
    program,
  );
  const calls = await callsOf(server.ready, coresToken);
  const call: Cores["call"] = async (method, path, body) =>
    askApi(`${server.ready.api}${path}`, method, body);
  const [known] = (await call("GET", "/zones?name=cores.example")).result as { id: string }[];
  const zoneId = known?.id ?? (await calls.createZone("cores.example", originPort));
  const records = `/zones/${zoneId}/dns_records`;
  const removeName: Cores["removeName"] = async (name) => {
    const [record] = (await call("GET", `${records}?name=${name}.cores.example`)).result as { id: string }[];
    const { status } = await call("DELETE", `${records}/${record!.id}`);
    if (status !== 200) throw new Error(`the API answered ${status}`);
  };
  // With its wildcard, the zone would serve a name that was never added.
  if (known === undefined) await removeName("*");
  return {
    server,
    calls,
    zoneId,
    originPort,
    data,
    call,
    pids: (role) => childrenOf(server.ready.pid).filter((pid) => roleOf(pid) === role),
    async addName(name) {
      const body = { type: "A", name, content: "127.0.0.1", proxied: true };
      const { status } = await call("POST", records, body);
      if (status !== 200) throw new Error(`the API answered ${status}`);
    },
    removeName,
    async [Symbol.asyncDispose]() {
      server.process.kill("SIGTERM");
      await server.exited;
      webSockets.close();
      origin.closeAllConnections();
      origin.close();
    },
  };
}

/** A call on a connection of its own: one that was kept may lead to a process that has ended. */
const askApi = (url: string, method: string, body: unknown): Promise<{ status: number; result: never }> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${coresToken}`, "content-type": "application/json" };
    const asked = request(url, { agent: false, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("error", reject);
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const { result } = JSON.parse(text) as { result: never };
        resolve({ status: response.statusCode!, result });
      });
    });
    asked.on("error", reject).end(body === undefined ? "" : JSON.stringify(body));
  });

/** The status of a request on a connection of its own, or the code of the failure. */
export const ask = (edge: string, host: string): Promise<number | string> =>
  new Promise((resolve) => {
    const asked = request(edge, { agent: false, headers: { host } }, (response) => {
      response.on("error", () => resolve("cut"));
      response.on("end", () => resolve(response.statusCode!)).resume();
    });
    asked.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
  });

/** Uploads an image. Resolves with the path of its delivery, without a variant. */
export async function uploadImage({ server, calls }: Cores, id: string, picture: Buffer): Promise<string> {
  const form = new FormData();
  form.set("id", id);
  form.set("file", new File([picture as Uint8Array<ArrayBuffer>], "picture.jpg"));
  const { api, delivery, account_hash } = server.ready;
  const { status } = await fetch(`${api}/accounts/${calls.account}/images/v1`, {
    method: "POST",
    headers: { authorization: `Bearer ${coresToken}` },
    body: form,
  });
  if (status !== 200) throw new Error(`the API answered ${status}`);
  return `${new URL(delivery).pathname}/${account_hash}/${id}`;
}

/** Clients that open a connection for each request, until stopped. Each one's answers, by status or failure. */
export function visitAllTheTime(
  edge: string,
  host: string,
  clients: number,
): () => Promise<Map<string, number>> {
  const state = { isStopping: false };
  const counts = new Map<string, number>();
  const client = async (): Promise<void> => {
    while (!state.isStopping) {
      const answer = String(await ask(edge, host));
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  return async () => {
    state.isStopping = true;
    await running;
    return counts;
  };
}

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" "))
    .filter((text) => text !== "")
    .map(Number);

function roleOf(pid: number): string | undefined {
  try {
    const text = /EDGE_SUPERVISED=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8"))?.[1];
    return text === undefined ? undefined : (JSON.parse(text) as Supervised).role;
  } catch {
    return undefined; // it has just ended
  }
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
