import { sql } from "kysely";
import { afterAll, beforeAll, describe, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { ownerToken, startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";
import { callsOf, type Calls } from "../runtime/platform.ts";

type Settings = Parameters<typeof startTestServer>[0];

/** One account, accessed through one node. */
export interface Place extends Calls {
  server: TestServer;
  /** Calls a path below the account. Throws if the API returns an error. */
  // oxlint-disable-next-line typescript/no-explicit-any
  api(method: string, path: string, body?: unknown): Promise<any>;
  /** Like `call`, but returns errors too. */
  answer(method: string, path: string, body?: unknown): Promise<ApiResponse>;
}

/** The accounts and nodes in which resources are created, deleted and created again. */
export interface Setting {
  /** The account of the first creation. */
  own: Place;
  /**
   * The accounts of the second creation: the same one and another. On PostgreSQL the other one is accessed
   * through another node.
   */
  places: { name: string; place: Place }[];
  /** The account of `own`, through every node. */
  nodes: Place[];
}

/**
 * Runs the same tests on SQLite, and on PostgreSQL with two nodes. Resources deleted through one node must
 * disappear from the other node's memory too.
 */
export function describeRecreation(
  title: string,
  settings: Settings,
  tests: (at: () => Setting) => void,
): void {
  const run = (
    storage: string,
    urls: () => Promise<(string | undefined)[]>,
    stop: () => Promise<void>,
  ): void => {
    describe(`${title} on ${storage}`, () => {
      let servers: TestServer[] = [];
      let setting: Setting;
      beforeAll(async () => {
        for (const databaseUrl of await urls())
          servers.push(
            await startTestServer({ ...settings, ...(databaseUrl === undefined ? {} : { databaseUrl }) }),
          );
        setting = await settingOf(servers);
      });
      afterAll(async () => {
        for (const server of servers.toReversed()) await server.close(1000);
        servers = [];
        await stop();
      });
      tests(() => setting);
    });
  };
  run(
    "SQLite",
    async () => [undefined],
    async () => {},
  );
  let postgres: TestPostgres | undefined;
  run(
    "PostgreSQL",
    async () => {
      postgres = await startPostgres();
      const url = await postgres.createDatabase();
      return [url, url];
    },
    async () => postgres?.stop(),
  );
}

async function settingOf(servers: readonly TestServer[]): Promise<Setting> {
  const [first] = servers as [TestServer];
  const last = servers.at(-1)!;
  const made = await first.call("POST", "/accounts", { name: "another", type: "standard" });
  const other = (made.body.result as { id: string }).id;
  await eventually(async () => last.services.accounts.find(other) !== undefined);
  if (servers.length > 1) await eventually(async () => (await nodesWithShards(first)) === servers.length);
  const account = first.ready.account_id;
  return {
    own: await placeOf(first, account),
    places: [
      { name: "the same account", place: await placeOf(first, account) },
      { name: "another account", place: await placeOf(last, other) },
    ],
    nodes: await Promise.all(servers.map(async (server) => placeOf(server, account))),
  };
}

/** The number of nodes that can create workflow instances, which requires leases on shards. */
async function nodesWithShards({ services }: TestServer): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(distinct owner) as count from workflow_shards`.execute(services.workflowInstances.read);
  return rows[0]!.count;
}

export async function placeOf(server: TestServer, account: string): Promise<Place> {
  const ready = { ...server.ready, account_id: account };
  const answer: Place["answer"] = async (method, path, body) =>
    server.call(method, `/accounts/${account}${path}`, body);
  return {
    ...(await callsOf(ready, ownerToken)),
    server,
    answer,
    async api(method, path, body) {
      const { body: envelope } = await answer(method, path, body);
      if (!envelope.success) throw new Error(`${method} ${path}: ${JSON.stringify(envelope.errors)}`);
      return envelope.result as unknown;
    },
  };
}

/** Resolves once the condition is true. Other nodes see a change within a second. */
export const eventually = async (holds: () => Promise<boolean>): Promise<void> =>
  vi.waitFor(
    async () => {
      if (!(await holds())) throw new Error(`This does not come to hold: ${String(holds)}`);
    },
    { interval: 20 },
  );
