import { Client } from "pg";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { startPooler } from "../../../../test/helpers/pooler.ts";
import { notificationsArrive } from "./start-follower.ts";
import { openStorage, type Storage } from "../storage.ts";
import { pruneChanges } from "./change-log.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Node {
  storage: Storage;
  /** The rows of `meta`, as this node knows them from changes and reloads. */
  known: ReadonlyMap<string, string>;
  put: (key: string, value: string) => Promise<void>;
  /** Each call of the listener: the keys of the changes, or "reload". */
  calls: (string[] | "reload")[];
  /** Called before the listener reads. */
  onRead: () => Promise<void>;
}

/** A node that keeps a table in memory, as the services of the platform do. */
async function nodeOf(url: string, everyMs = 20): Promise<Node> {
  const storage = await openStorage(url, 5000);
  closers.push(() => storage.close());
  let known = new Map<string, string>();
  const read = async (): Promise<Map<string, string>> => {
    await node.onRead();
    const rows = await storage.read.selectFrom("meta").selectAll().execute();
    return new Map(rows.map(({ key, value }) => [key, value]));
  };
  const node: Node = {
    storage,
    get known() {
      return known;
    },
    async put(key, value) {
      await storage.write(async (trx, changed) => {
        await put(trx, key, value);
        changed({ kind: "zone", id: key });
      });
    },
    calls: [],
    onRead: async () => {},
  };
  storage.onChange(
    async (changes) => {
      node.calls.push(changes.map(({ id }) => id));
      const rows = await read();
      for (const { id } of changes) known.set(id, rows.get(id) ?? "");
    },
    async () => {
      const rows = await read();
      return () => {
        node.calls.push("reload");
        known = rows;
      };
    },
  );
  await storage.watch();
  known = await read();
  storage.follow({ everyMs, whileNotifiedMs: Math.max(everyMs, 5000) });
  return node;
}

const put = async (trx: Storage["read"], key: string, value: string): Promise<void> =>
  void (await trx
    .insertInto("meta")
    .values({ key, value })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
    .execute());

async function clientOf(url: string): Promise<Client> {
  const client = new Client(url);
  client.on("error", () => {});
  await client.connect();
  closers.push(() => client.end());
  return client;
}

/** Writes a row whose change other nodes cannot see: the log loses its rows before anyone reads them. */
async function writeUnlogged({ storage, put }: Node, key: string): Promise<void> {
  await sql`create or replace function lose() returns trigger as $$ begin return null; end $$
    language plpgsql`.execute(storage.read);
  await sql`create trigger lose before insert on changes for each row execute function lose()`.execute(
    storage.read,
  );
  await put(key, "1");
  await sql`drop trigger lose on changes`.execute(storage.read);
}

const gaps = ({ storage }: Node): number => storage.following!.reloads.missing;
const wait = { interval: 5 };

it("changes arrive while transactions of strangers are open, in this database and in another", async () => {
  const [url, other] = [await postgres.createMigrated(), await postgres.createMigrated()];
  const [first, second] = [await nodeOf(url), await nodeOf(url)];
  for (const each of [url, other]) {
    const stranger = await clientOf(each);
    await stranger.query("create table strange (id int)");
    await stranger.query("begin");
    await stranger.query("insert into strange values (1)");
  }
  await first.put("a", "1");
  await vi.waitFor(() => expect(second.known.get("a")).toBe("1"), wait);
});

it("deleted rows of the log are noticed, and everything is read again", async () => {
  const url = await postgres.createMigrated();
  const [first, second] = [await nodeOf(url), await nodeOf(url)];
  await first.put("a", "1");
  await vi.waitFor(() => expect(second.known.get("a")).toBe("1"), wait);
  await writeUnlogged(first, "lost");
  await vi.waitFor(() => expect(second.known.get("lost")).toBe("1"), wait);
  expect(gaps(second)).toBe(1);
  await first.put("b", "2");
  await vi.waitFor(() => expect(second.known.get("b")).toBe("2"), wait);
  expect([gaps(second), second.calls.at(-1)]).toEqual([1, ["b"]]);
  expect(second.storage.following!.seq).toBe(first.storage.following!.seq);
});

it("notices a log that went back, as after a failover to a server that lacked changes", async () => {
  const url = await postgres.createMigrated();
  const node = await nodeOf(url);
  const stranger = await clientOf(url);
  for (const key of ["a", "b", "c"]) await node.put(key, "1");
  // The other timeline has other changes with the same numbers, and more of them.
  await stranger.query(`begin; delete from changes where seq >= 2; update change_head set seq = 5;
    insert into changes select seq, 1, 1, 'zone', 'other', null, 1 from generate_series(2, 5) as seq;
    delete from meta where key <> 'a'; insert into meta values ('other', 'o'); commit; select pg_notify('selvedge_changes', 'another 5')`);
  await vi.waitFor(
    () =>
      expect([...node.known]).toEqual([
        ["a", "1"],
        ["other", "o"],
      ]),
    wait,
  );
  expect(node.storage.following!.reloads).toEqual({ missing: 0, rewritten: 1 });
  await node.put("next", "1");
  expect(node.storage.following!.seq).toBe(6);
});

it("numbers have no holes after random rollbacks, and every node knows what storage has", async () => {
  const url = await postgres.createMigrated();
  const nodes = [await nodeOf(url), await nodeOf(url)];
  const [writers, writes] = [8, 50];
  // Refuses rows at the commit, after their transaction has taken its number.
  await sql`create function refuse() returns trigger as $$ begin
    if new.value like '%refused' then raise exception 'refused'; end if; return null; end $$
    language plpgsql`.execute(nodes[0]!.storage.read);
  await sql`create constraint trigger refuse after insert or update on meta deferrable initially deferred
    for each row execute function refuse()`.execute(nodes[0]!.storage.read);
  let rolledBack = 0;
  const write = async (writer: number, n: number): Promise<void> => {
    const outcome = ["", "", " thrown", "", " refused"][(n * 7 + writer) % 5]!;
    const writing = nodes[writer % 2]!.storage.write(async (trx, changed) => {
      const key = `${(writer * 31 + n * 17) % 20}`;
      await put(trx, key, `${writer} ${n}${outcome}`);
      changed({ kind: "zone", id: key });
      if (outcome === " thrown") throw new Error("undone");
    });
    await writing.catch(() => rolledBack++);
  };
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; n < writes; n++) await write(writer, n);
    }),
  );
  const { rows } = await sql<{ rows: number; highest: number; head: number }>`
    select count(*) as rows, max(changes.seq) as highest, max(change_head.seq) as head
    from changes, change_head`.execute(nodes[0]!.storage.read);
  const committed = writers * writes - rolledBack;
  expect(rolledBack).toBe((writers * writes * 2) / 5);
  expect(rows[0]).toEqual({ rows: committed, highest: committed, head: committed });
  const stored = await nodes[0]!.storage.read.selectFrom("meta").selectAll().orderBy("key").execute();
  for (const { storage, known } of nodes) {
    expect(await storage.following!.reaches(committed, 5000)).toBe(true);
    expect(Object.fromEntries(known)).toEqual(
      Object.fromEntries(stored.map(({ key, value }) => [key, value])),
    );
    expect(storage.following!.reloads).toEqual({ missing: 0, rewritten: 0 });
  }
});

it("a change that fails to be read is repeated, and the node says that it is behind", async () => {
  const url = await postgres.createMigrated();
  const [first, second] = [await nodeOf(url), await nodeOf(url)];
  let isFailing = true;
  second.onRead = async () => {
    if (isFailing) throw new Error("the service cannot read");
  };
  await first.put("a", "1");
  await vi.waitFor(() => expect(second.storage.lagSeconds).toBeGreaterThan(0.5), wait);
  expect(await second.storage.following!.reaches(1, 10)).toBe(false);
  isFailing = false;
  expect(await second.storage.following!.reaches(1, 10_000)).toBe(true);
  expect(second.known.get("a")).toBe("1");
  await vi.waitFor(() => expect(second.storage.lagSeconds).toBeLessThan(0.5), wait);
});

it("a failed reload is repeated, and writes go on during a slow one", async () => {
  const url = await postgres.createMigrated();
  const [first, second] = [await nodeOf(url), await nodeOf(url)];
  let failures = 2;
  const slow = Promise.withResolvers<void>();
  second.onRead = async () => {
    if (failures-- > 0) throw new Error("the service cannot read");
    await slow.promise;
  };
  await writeUnlogged(first, "lost");
  await vi.waitFor(() => expect(failures).toBeLessThan(0), wait);
  expect([gaps(second), second.known.has("lost")]).toEqual([0, false]);
  // The reload has begun. Another gap and writes of both nodes come meanwhile.
  await writeUnlogged(first, "lost too");
  const own = second.put("own", "2");
  await first.put("foreign", "3");
  slow.resolve();
  await own;
  expect(second.known.get("own")).toBe("2");
  await vi.waitFor(() => expect(second.known.get("lost too")).toBe("1"), wait);
  await vi.waitFor(() => expect(second.known.get("foreign")).toBe("3"), wait);
  const { following } = first.storage;
  await vi.waitFor(() => expect([following!.seq, following!.headSeq]).toEqual([4, 4]), wait);
  expect(await second.storage.following!.reaches(4, 5000)).toBe(true);
  expect(gaps(second)).toBeGreaterThan(0);
});

it("services are replaced at once by a reload, and those that can be read even if others cannot", async () => {
  const url = await postgres.createMigrated();
  const [first, second] = [await nodeOf(url), await nodeOf(url)];
  const { storage } = second;
  const places: string[] = [];
  const begun = Promise.withResolvers<void>();
  storage.onChange(nothing, async () => {
    begun.resolve();
    return () => void places.push("one");
  });
  storage.onChange(nothing, async () => {
    await begun.promise;
    return () => {
      queueMicrotask(() => places.push("later"));
      places.push("two");
    };
  });
  let isBroken = true;
  storage.onChange(nothing, async () => {
    if (isBroken) throw new Error("a row of this service is damaged");
    return () => void places.push("three");
  });
  await writeUnlogged(first, "lost");
  await vi.waitFor(() => expect(places.slice(0, 3)).toEqual(["one", "two", "later"]), wait);
  expect(second.known.get("lost")).toBe("1");
  expect(gaps(second)).toBe(0);
  isBroken = false;
  await vi.waitFor(() => expect(gaps(second)).toBe(1), wait);
  expect(places.slice(-4)).toEqual(["one", "two", "three", "later"]);
});
const nothing = async (): Promise<void> => {};

it("notifications make a node read at once, and their loss does not stop it", async () => {
  const url = await postgres.createMigrated();
  // Without notifications, nothing would be read for a minute.
  const [first, second] = [await nodeOf(url), await nodeOf(url, 60_000)];
  const { following } = second.storage;
  await vi.waitFor(() => expect(following!.isNotified).toBe(true), wait);
  await first.put("a", "1");
  await vi.waitFor(() => expect(second.known.get("a")).toBe("1"), wait);
  // The connection is cut, and a change comes before there is a new one.
  const stranger = await clientOf(url);
  await stranger.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'selvedge changes'`);
  await first.put("b", "2");
  await vi.waitFor(() => expect(second.known.get("b")).toBe("2"), wait);
  await vi.waitFor(() => expect(following!.isNotified).toBe(true), wait);
  expect(second.storage.following!.reloads).toEqual({ missing: 0, rewritten: 0 });
});

it("without notifications a node reads the log itself, and doctor can tell", async () => {
  const url = await postgres.createMigrated();
  const pooler = await startPooler(url);
  closers.push(() => pooler.close());
  expect([await notificationsArrive(url), await notificationsArrive(pooler.url)]).toEqual([true, false]);
  const [first, second] = [await nodeOf(url), await nodeOf(pooler.url)];
  await vi.waitFor(() => expect(first.storage.following!.isNotified).toBe(true), wait);
  for (const key of ["a", "b"]) {
    await first.put(key, "1");
    await vi.waitFor(() => expect(second.known.get(key)).toBe("1"), wait);
  }
  expect(second.storage.following!.isNotified).toBe(false);
});

it("a writer that stops before its commit does not keep the others from writing for long", async () => {
  const { storage } = await nodeOf(await postgres.createMigrated());
  // A trigger of the commit reads what the transaction has set for the wait for its client.
  await sql`create function raise_timeout() returns trigger as $$ begin
    raise exception 'ends after %', current_setting('idle_in_transaction_session_timeout'); end $$
    language plpgsql`.execute(storage.read);
  await sql`create constraint trigger raise_timeout after insert on changes deferrable initially deferred
    for each row execute function raise_timeout()`.execute(storage.read);
  const writing = storage.write(async (_trx, changed) => changed({ kind: "zone", id: "a" }));
  await expect(writing).rejects.toThrow("ends after 10s");
});

it("nothing follows the statement that takes a number", async () => {
  const { storage } = await nodeOf(await postgres.createMigrated());
  let late = async (): Promise<unknown> => undefined;
  let lateChange = (): void => {};
  await storage.write(async (trx, changed) => {
    changed({ kind: "zone", id: "a" });
    late = async () => sql`select 1`.execute(trx);
    lateChange = () => changed({ kind: "zone", id: "b" });
  });
  await expect(late()).rejects.toThrow("Expected the end of the transaction but received a statement");
  expect(lateChange).toThrow("Expected the end of the transaction but received a change");
});

it("old changes are deleted, and the last one stays", async () => {
  const url = await postgres.createMigrated();
  const node = await nodeOf(url);
  for (let n = 0; n < 6; n++) await node.put(`${n}`, "1");
  const { read } = node.storage;
  const left = async (): Promise<number[]> =>
    (await read.selectFrom("changes").select("seq").orderBy("seq").execute()).map(({ seq }) => seq);
  await pruneChanges(read);
  expect(await left()).toEqual([1, 2, 3, 4, 5, 6]);
  await pruneChanges(read, { keptMs: 60_000, rowsMax: 4 });
  expect(await left()).toEqual([3, 4, 5, 6]);
  await pruneChanges(read, { keptMs: -1000, rowsMax: 1000 });
  expect(await left()).toEqual([6]);
  await node.put("after", "1");
  expect(await node.storage.following!.reaches(7, 5000)).toBe(true);
  expect(node.storage.following!.reloads).toEqual({ missing: 0, rewritten: 0 });
});
