import { uploadForm } from "../runtime/platform.ts";
import type { ServerProcess } from "./process.ts";
import { ownerToken } from "./server.ts";
import { WebSocket } from "ws";
import { requestEdge } from "./edge-request.ts";

const accounts = 50;
const balance = 100;
export const bankSum = accounts * balance;

const code = `import { DurableObject } from "cloudflare:workers";
const create = "create table if not exists accounts (id integer primary key, balance int, note text default '')";
export class Bank extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    sql.exec(create);
    sql.exec("create table if not exists moves (n integer primary key)");
    if (sql.exec("select count(*) as n from accounts").one().n === 0)
      ctx.storage.transactionSync(() => { for (let i = 0; i < ${accounts}; i++) sql.exec("insert into accounts (id, balance) values (?, ${balance})", i); });
  }
  async fetch(request) {
    if (request.headers.get("upgrade") !== "websocket") return Response.json(await this[new URL(request.url).pathname.split("/")[3]](Number(new URL(request.url).pathname.split("/")[4])));
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, n) { socket.send(JSON.stringify(this.move(Number(n)))); }
  move(n) {
    const { sql } = this.ctx.storage;
    this.ctx.storage.transactionSync(() => {
      sql.exec("update accounts set balance = balance - 1, note = note || 'abcdefgh' where id = ?", n % ${accounts});
      sql.exec("insert into moves values (?)", n);
      sql.exec("update accounts set balance = balance + 1 where id = ?", (n * 7 + 1) % ${accounts});
    });
    return { n };
  }
  facts() {
    const { sql } = this.ctx.storage;
    return { sum: sql.exec("select sum(balance) as sum from accounts").one().sum, moves: sql.exec("select n from moves order by n").toArray().map(({ n }) => n) };
  }
}
const d1 = {
  async create(db) {
    await db.exec(create);
    await db.exec("create table if not exists moves (n integer primary key)");
    await db.batch(Array.from({ length: ${accounts} }, (_, i) => db.prepare("insert or ignore into accounts (id, balance) values (?, ${balance})").bind(i)));
    return {};
  },
  async move(db, n) {
    await db.batch([
      db.prepare("update accounts set balance = balance - 1, note = note || 'abcdefgh' where id = ?").bind(n % ${accounts}),
      db.prepare("insert into moves values (?)").bind(n),
      db.prepare("update accounts set balance = balance + 1 where id = ?").bind((n * 7 + 1) % ${accounts}),
    ]);
    return { n };
  },
  facts: async (db) => ({
    sum: await db.prepare("select sum(balance) as sum from accounts").first("sum"),
    moves: (await db.prepare("select n from moves order by n").raw()).map(([n]) => n),
  }),
};
export default { async fetch(request, env) {
  const [, place, name, method, n] = new URL(request.url).pathname.split("/");
  try {
    if (place === "d1") return Response.json(await d1[method](env.DB, Number(n)));
    const stub = env.BANKS.getByName(name);
    return place === "rpc" ? Response.json(await stub[method](Number(n))) : await stub.fetch(request);
  } catch (error) { return Response.json({ error: error.message }, { status: 500 }); }
} };`;

interface Facts {
  sum: number;
  moves: number[];
}

/** Objects and a D1 database whose transactions move money, so that the sum of all balances stays the same. */
export interface Bank {
  database: string;
  /** Rejects unless the move is acknowledged. `place`: "object", "rpc", "socket" or "d1". */
  move(place: string, name: string, n: number): Promise<void>;
  facts(place: string, name: string): Promise<Facts>;
  api(method: string, path: string, body?: unknown): Promise<{ status: number; result: never; text: string }>;
}

/** The bank of a platform; `database`: one that has it already. */
export async function openBank({ ready }: ServerProcess, database?: string): Promise<Bank> {
  const api: Bank["api"] = async (method, path, body) => {
    const isForm = body instanceof FormData;
    const response = await fetch(`${ready.api}/accounts/${ready.account_id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ownerToken}`,
        ...(body !== undefined && !isForm && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, result: (JSON.parse(text) as { result: never }).result, text };
  };
  const { subdomain } = (await api("GET", "/workers/subdomain")).result as { subdomain: string };
  const host = `bank.${subdomain}.workers.localhost`;
  const ask = async (path: string): Promise<unknown> => {
    const { status, body } = await requestEdge(ready.edge, host, path);
    if (status !== 200) throw new Error(body);
    return JSON.parse(body);
  };
  let id = database;
  if (id === undefined) {
    id = ((await api("POST", "/d1/database", { name: "bank" })).result as { uuid: string }).uuid;
    const bindings = [
      { type: "durable_object_namespace", name: "BANKS", class_name: "Bank" },
      { type: "d1", name: "DB", id },
    ];
    const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: ["Bank"] } };
    const uploaded = await api("PUT", "/workers/scripts/bank", uploadForm({ code, bindings, metadata }));
    if (uploaded.status !== 200) throw new Error(uploaded.text);
    await ask("/d1/-/create/0");
  }
  return {
    database: id,
    move: async (place, name, n) => {
      if (place === "socket") await moveOver(`${ready.edge.replace("http", "ws")}/socket/${name}`, host, n);
      else await ask(`/${place}/${name}/move/${n}`);
    },
    facts: async (place, name) => (await ask(`/${place}/${name}/facts/0`)) as Facts,
    api,
  };
}

/** Sends a move as a message of a WebSocket. Resolves with its answer, which is a message, too. */
async function moveOver(url: string, host: string, n: number): Promise<void> {
  const socket = new WebSocket(url, { headers: { host } });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.on("open", () => socket.send(String(n)));
      socket.on("message", () => resolve());
      socket.on("error", reject).on("close", () => reject(new Error("closed")));
    });
  } finally {
    socket.terminate();
  }
}

/** Moves money, one move after the other, until it is stopped. Returns the numbers of acknowledged moves, and when each was. */
export function startMoves(
  bank: Bank,
  place: string,
  name: string,
  from = 0,
): { acknowledged: number[]; timesMs: number[]; stop: () => Promise<void> } {
  const acknowledged: number[] = [];
  const timesMs: number[] = [];
  const over = new AbortController();
  const work = (async () => {
    for (let n = from; !over.signal.aborted; n++)
      try {
        await bank.move(place, name, n);
        acknowledged.push(n);
        timesMs.push(Date.now());
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20)); // its answer was lost: the move may be there
      }
  })();
  return {
    acknowledged,
    timesMs,
    stop: async () => {
      over.abort();
      await work;
    },
  };
}
