import { sql } from "kysely";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { openStorage } from "../../../platform/storage/storage.ts";
import { newId } from "../../../platform/util/ids.ts";
import type { NewInstance } from "../instance.ts";
import { merge } from "./batch.ts";
import { beat, take } from "./store-leases.ts";
import { instanceStore } from "./store.ts";
import { FencedError, JournalWriter, StateLost, type Lease } from "./writer.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

async function open() {
  const url = await postgres.createMigrated();
  const storage = await openStorage(url);
  onTestFinished(() => storage.close());
  const { read } = storage;
  const accountId = newId();
  await read
    .insertInto("accounts")
    .values({ id: accountId, name: "A", type: "standard", settings: "{}", has_billing: 0, created_on: 0 })
    .execute();
  const { rows } = await sql<{ rid: number }>`
    insert into workflows (id, account_id, name, script_name, class_name, crons, created_on, modified_on)
    values (${newId()}, ${accountId}, 'w', 's', 'C', '[]', 0, 0) returning rid`.execute(read);
  const state = {
    ...{ status: "running" as const, run: 1, versionRid: 1, createdOn: 0, modifiedOn: 0, startedOn: null },
    ...{
      endedOn: null,
      pausedOn: null,
      wakeOn: null,
      expiresOn: null,
      crashes: 0,
      output: null,
      error: null,
    },
  };
  const instance = (id: string, { shard }: Lease): NewInstance => ({
    ...{ shard, accountId, workflowRid: rows[0]!.rid, id, trigger: "api", creatorTrace: null, params: "" },
    ...{ successRetentionMs: 1, errorRetentionMs: 1 },
    ...state,
  });
  const outputs = async (): Promise<string[]> => {
    const found = await read
      .selectFrom("workflow_instances")
      .select(["id", "output"])
      .orderBy("id")
      .execute();
    return found.map(({ id, output }) => `${id} ${output}`);
  };
  return { url, storage, instance, state, outputs };
}

it("a node changes no instance that got the row id of one which the database has lost", async () => {
  const { url, storage, instance, state, outputs } = await open();
  const [first, second] = [instanceStore(storage, "first"), instanceStore(storage, "second")];
  const [own] = (await take(storage.read, "first", 1)) as [Lease];
  const [others] = (await take(storage.read, "second", 1)) as [Lease];
  const create = (id: string, lease: Lease) => merge([{ kind: "create", instance: instance(id, lease) }]);
  await first.commit(create("before", own), [own]);
  const goBack = await postgres.save(url);
  const [lost] = await first.commit(create("lost", own), [own]);
  await goBack();
  await expect
    .poll(() =>
      storage.check().then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  // A sequence is ahead by some numbers in the log of the server, so a failover gives them out again later.
  await sql`select setval(pg_get_serial_sequence('workflow_instances', 'rid'), ${lost! - 1})`.execute(
    storage.read,
  );
  expect(await second.commit(create("other", others), [others])).toEqual([lost]);
  const end = merge([{ kind: "update", rid: lost!, state: { ...state, output: "of lost" } }]);
  await expect(first.commit(end, [own])).rejects.toThrow(StateLost);
  expect(await outputs()).toEqual(["before null", "other null"]);
  await first.commit(create("after", own), [own]); // it has read everything again
  expect(await outputs()).toEqual(["after null", "before null", "other null"]);
});

it("a node that has written nothing for days writes on, and marks of nodes that ended are removed", async () => {
  const { storage, instance, outputs } = await open();
  const { read } = storage;
  const [idle, ended] = [instanceStore(storage, "idle"), instanceStore(storage, "ended")];
  for (const [node, store] of [
    ["ended", ended],
    ["idle", idle],
  ] as const) {
    const [lease] = (await take(read, node, 1)) as [Lease];
    await store.commit(merge([{ kind: "create", instance: instance(node, lease) }]), [lease]);
  }
  await sql`update workflow_marks set at = now() - interval '2 days'`.execute(read);
  await beat(read, "idle");
  const { rows } = await sql<{ node: string }>`select node from workflow_marks`.execute(read);
  expect(rows).toEqual([{ node: "idle" }]);
  const [lease] = (await take(read, "idle", 1)) as [Lease];
  await idle.commit(merge([{ kind: "create", instance: instance("later", lease) }]), [lease]);
  expect(await outputs()).toEqual(["ended null", "idle null", "later null"]);
});

it("a commit whose answer was lost is repeated", async () => {
  const { storage, instance, outputs } = await open();
  const [lease] = (await take(storage.read, "node", 1)) as [Lease];
  let losesAnswer = false;
  const read = new Proxy(storage.read, {
    get: (target, key) =>
      key !== "executeQuery"
        ? (Reflect.get(target, key) as unknown)
        : async (...given: Parameters<typeof target.executeQuery>) => {
            const answer = await target.executeQuery(...given);
            if (losesAnswer) throw new Error("no answer");
            return answer;
          },
  });
  const store = instanceStore({ read, direct: undefined } as never, "node");
  const commit = async (id: string): Promise<unknown> =>
    store.commit(merge([{ kind: "create", instance: instance(id, lease) }]), [lease]);
  for (const id of ["a", "b", "c"]) {
    losesAnswer = true;
    for (const _ of [1, 2]) await expect(commit(id)).rejects.toThrow("no answer");
    losesAnswer = false;
    expect(await commit(id)).toEqual([null]); // it is there
  }
  expect(await outputs()).toEqual(["a null", "b null", "c null"]);
});

it("after a loss nothing is written of what was waiting, for any shard", async () => {
  const clock = { now: () => 0, soon: (work: () => void) => setImmediate(work), after: () => () => {} };
  const committed: unknown[] = [];
  const writer = new JournalWriter(
    async (batch, leases) => {
      committed.push(batch.removes.size);
      throw new StateLost(leases);
    },
    clock,
    () => {},
  );
  const fenced: number[][] = [];
  writer.onFenced = (shards) => fenced.push([...shards]);
  for (const shard of [1, 2, 3]) writer.terms.set(shard, 1);
  const first = writer.append(1, [{ kind: "remove", rid: 1 }]);
  const many = Array.from({ length: 3000 }, (_, rid) => ({ kind: "remove" as const, rid }));
  const second = writer.append(2, many);
  const third = writer.append(2, many);
  for (const each of [first, second, third]) await expect(each).rejects.toThrow(FencedError);
  expect(fenced).toEqual([[1, 2, 3]]);
  expect(committed).toHaveLength(1);
  await writer.drain();
});
