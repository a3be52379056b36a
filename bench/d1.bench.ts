import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atMost, median, pairedRatio, printGoals, printTable, reported } from "./lib/measure.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * Compares D1 with `wrangler dev`: CPU time of all processes for a request whose script makes one query, and for each
 * further query of the same request. `wrangler dev` runs the script and the database in one process.
 */
const warmUpRounds = 4;
const rounds = 11;
const queries = 50;
const rows = 1000;

const code = `
const kinds = {
  read: (db, i) => db.prepare("select id, name, score from people where id = ?").bind(1 + i % ${rows}).first(),
  all: (db) => db.prepare("select id, name, score from people where id <= 100").all(),
  write: (db, i) => db.prepare("update people set score = score + 1 where id = ?").bind(1 + i % ${rows}).run(),
  batch: (db) => db.batch(Array.from({ length: 100 }, (_, i) => db.prepare("insert into log (n) values (?)").bind(i))),
};
export default {
  async fetch(request, env) {
    const [, kind, count] = new URL(request.url).pathname.split("/");
    if (kind === "prepare") {
      await env.DB.exec("create table people (id integer primary key, name text, score integer)");
      await env.DB.exec("create table log (id integer primary key, n integer)");
      await env.DB.prepare("insert into people with recursive c(x) as (select 1 union all select x + 1 from c where x < ${rows}) select x, 'name ' || x, 0 from c").run();
      return new Response();
    }
    for (let i = 0; i < Number(count); i++) await kinds[kind](env.DB, i);
    return new Response();
  },
};`;

interface Side {
  url: string;
  host: string;
  pid: number;
  stop(): Promise<void>;
}

async function startOurs(): Promise<Side> {
  const selvedge = await startSelvedge();
  const { ready } = selvedge;
  const account = `/accounts/${ready.account_id}`;
  const { uuid } = await api<{ uuid: string }>(ready, "POST", `${account}/d1/database`, { name: "bench" });
  const bindings = [{ type: "d1", name: "DB", id: uuid }];
  const metadata = { main_module: "index.js", compatibility_date: "2026-11-01", bindings };
  const form = new FormData();
  form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
  form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
  const response = await fetch(`${ready.api}${account}/workers/scripts/bench`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!response.ok) throw new Error(await response.text());
  const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
  const host = `bench.${subdomain}.workers.localhost`;
  return { url: ready.edge, host, pid: selvedge.pid, stop: async () => selvedge.stop() };
}

async function startTheirs(): Promise<Side> {
  const peer = await startPeer("wrangler-dev-d1.ts", code);
  const { port, pid } = peer;
  return { url: `http://127.0.0.1:${port}`, host: "bench", pid, stop: async () => peer.stop() };
}

const sides = { selvedge: await startOurs(), dev: await startTheirs() };
type Name = keyof typeof sides;
const names = Object.keys(sides) as Name[];
const ask = async ({ url, host }: Side, path: string, count: number): Promise<number> =>
  load(url, count, 1, () => ({ method: "GET", path, headers: { host } }));
for (const side of Object.values(sides)) await ask(side, "/prepare", 1);

/** The work of a request, its repetitions, and the number of requests of a round. */
const kinds = {
  "one read": { path: "/read/1", queries: 1, requests: 150 },
  "one write": { path: "/write/1", queries: 1, requests: 150 },
  "further reads": { path: `/read/${queries}`, queries, requests: 8 },
  "further writes": { path: `/write/${queries}`, queries, requests: 8 },
  "reads of 100 rows": { path: `/all/${queries}`, queries, requests: 8 },
  "batches of 100 inserts": { path: "/batch/4", queries: 4, requests: 8 },
} as const;
type Kind = keyof typeof kinds;
const kindNames = Object.keys(kinds) as Kind[];
const empty = (): Record<Name, number[]> => ({ selvedge: [], dev: [] });
/** Per query, for each round: CPU µs of all processes, CPU µs of Node, and elapsed ms. */
const figures = Object.fromEntries(
  kindNames.map((kind) => [kind, { cpu: empty(), front: empty(), wall: empty() }]),
) as Record<Kind, Record<"cpu" | "front" | "wall", Record<Name, number[]>>>;

for (let round = -warmUpRounds; round < rounds; round++) {
  for (const kind of kindNames) {
    const { path, queries: each, requests } = kinds[kind];
    // The sides alternate in who goes first.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const side = sides[name];
      const before = treeCpuMicroseconds(side.pid);
      const seconds = await ask(side, path, requests);
      const after = treeCpuMicroseconds(side.pid);
      if (round < 0) continue;
      const count = each * requests;
      figures[kind].cpu[name].push((after.own + after.below - before.own - before.below) / count);
      figures[kind].front[name].push((after.own - before.own) / count);
      figures[kind].wall[name].push((seconds * 1000) / count);
    }
  }
}

printTable(
  ["", "CPU µs", "of it Node", "ms"],
  kindNames.flatMap((kind) =>
    names.map((name) => [
      `${name === "dev" ? "wrangler dev" : "Selvedge"}: ${kind}`,
      median(figures[kind].cpu[name]),
      median(figures[kind].front[name]),
      median(figures[kind].wall[name]),
    ]),
  ),
);
const ratio = (kind: Kind): number => pairedRatio(figures[kind].cpu.selvedge, figures[kind].cpu.dev);
printGoals([
  atMost("CPU of a request with a point read, Selvedge / wrangler dev", ratio("one read"), 0.35),
  atMost("CPU of a request with a write, Selvedge / wrangler dev", ratio("one write"), 0.6),
  ...(["further reads", "further writes", "reads of 100 rows", "batches of 100 inserts"] as const).map(
    (kind) => reported(`CPU of ${kind}, Selvedge / wrangler dev`, ratio(kind)),
  ),
  atMost(
    "CPU of a batch of 100 inserts / one further write",
    pairedRatio(figures["batches of 100 inserts"].cpu.selvedge, figures["further writes"].cpu.selvedge),
    3,
  ),
]);
for (const side of Object.values(sides)) await side.stop();
