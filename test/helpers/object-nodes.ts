import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import type { Ready } from "../../src/ready.ts";
import { shardOf } from "../../src/platform/object-shards/shard.ts";
import { callsOf, type Calls } from "../runtime/platform.ts";
import { freePort } from "./free-port.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";
import { serve, temporaryFolder, type ServerProcess } from "./process.ts";
import { ownerToken } from "./server.ts";

export interface ObjectNode extends Calls {
  name: string;
  port: number;
  server: ServerProcess;
  dataDir: string;
  api: AccountApi;
  /** The settings of the node, for other commands. */
  settings: readonly string[];
}

export interface ApiResponse {
  status: number;
  text: string;
  result: unknown;
}

/** Calls an operation below the account. */
export type AccountApi = (method: string, path: string, body?: unknown) => Promise<ApiResponse>;

export const apiOf =
  ({ api, account_id }: Pick<Ready, "api" | "account_id">): AccountApi =>
  async (method, path, body) => {
    const response = await fetch(`${api}/accounts/${account_id}${path}`, {
      method,
      headers: { authorization: `Bearer ${ownerToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, result: (JSON.parse(text) as { result: unknown }).result };
  };

/** The ports of the nodes that own shards, by shard. */
export async function ownersIn(database: Client): Promise<Map<number, number>> {
  const { rows } = await database.query<{ shard: number; address: string }>(
    `select s.shard, n.address from object_shards s join object_nodes n on n.id = s.owner where s.last = s.owner`,
  );
  return new Map(rows.map(({ shard, address }) => [shard, Number(address.split(":").at(-1))]));
}

interface Options {
  leaseMs: number;
  /** Further settings of all nodes. */
  settings: readonly string[];
}

/** Nodes on one PostgreSQL that divide objects, and ship their log to one folder. */
export class ObjectNodes {
  readonly folder = temporaryFolder();
  readonly all: ObjectNode[] = [];
  readonly leaseMs: number;
  readonly #settings: readonly string[];
  readonly postgres: TestPostgres;
  readonly databaseUrl: string;
  readonly database: Client;

  private constructor(postgres: TestPostgres, databaseUrl: string, { leaseMs, settings }: Options) {
    chmodSync(this.folder, 0o711); // so that the user of cells can pass
    this.postgres = postgres;
    this.databaseUrl = databaseUrl;
    this.database = new Client({ connectionString: databaseUrl });
    this.leaseMs = leaseMs;
    this.#settings = settings;
  }

  static async begin(options: Options): Promise<ObjectNodes> {
    const postgres = await startPostgres();
    return new ObjectNodes(postgres, await postgres.createDatabase(), options);
  }

  /** Starts a node; one of a name that ran before continues it. */
  async start(name: string, more: readonly string[] = []): Promise<ObjectNode> {
    const dataDir = join(this.folder, name);
    mkdirSync(dataDir, { recursive: true, mode: 0o711 });
    const port = await freePort();
    const settings = [
      ...["--data-dir", dataDir, "--database-url", this.databaseUrl, "--blob-url", "postgres"],
      ...["--backup-folder", join(this.folder, "place"), "--object-log", "1s", ...this.#settings, ...more],
    ];
    const lease = ["--object-lease-seconds", String(this.leaseMs / 1000)];
    const server = await serve([...settings, ...lease, "--node-listen", `127.0.0.1:${port}`], {
      SELVEDGE_API_TOKEN: ownerToken,
      SELVEDGE_API_RATE_LIMIT: "0",
    });
    const calls = await callsOf(server.ready, ownerToken);
    const node = { ...calls, api: apiOf(server.ready), name, port, server, dataDir, settings };
    this.all.push(node);
    return node;
  }

  /** Ends a node: it starts again under its name. */
  async end(node: ObjectNode, signal: NodeJS.Signals): Promise<void> {
    process.kill(node.server.ready.pid, signal); // not the process that started it, whose end stops it gently
    await node.server.exited;
    this.all.splice(this.all.indexOf(node), 1);
  }

  /** The ports of the nodes that own shards, by shard. */
  async owners(): Promise<Map<number, number>> {
    await this.#connected();
    return ownersIn(this.database);
  }

  /** Resolves when each node has its share of all shards. */
  async divided(): Promise<void> {
    const share = Math.floor(64 / this.all.length);
    const deadline = performance.now() + 6 * this.leaseMs + 20_000;
    for (;;) {
      const ports = [...(await this.owners()).values()];
      const counts = this.all.map(({ port }) => ports.filter((each) => each === port).length);
      if (ports.length === 64 && counts.every((count) => count >= share)) return;
      if (performance.now() > deadline) throw new Error(`The shards are divided as ${counts.join(", ")}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** The node that has a namespace, and another one. */
  async ownerAndOther(namespace: string): Promise<[ObjectNode, ObjectNode]> {
    const port = (await this.owners()).get(shardOf(namespace));
    const owner = this.all.find((node) => node.port === port);
    if (owner === undefined) throw new Error("The namespace has no owner");
    return [owner, this.all.find((node) => node !== owner)!];
  }

  async close(): Promise<void> {
    for (const { server } of this.all) {
      for (const signal of ["SIGCONT", "SIGKILL"]) process.kill(server.ready.pid, signal);
      await server.exited;
    }
    await this.#connecting?.then(async () => this.database.end());
    await this.postgres.stop();
    rmSync(this.folder, { recursive: true });
  }

  #connecting: Promise<unknown> | undefined;

  async #connected(): Promise<void> {
    await (this.#connecting ??= this.database.connect());
  }
}
