import { sql } from "kysely";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { openStorage, type Storage } from "../../platform/storage/storage.ts";
import { merge } from "./store/batch.ts";
import { instanceStore } from "./store/store.ts";
import { EngineHarness } from "./testing.ts";
import { RefusedWriteError } from "./store/writer.ts";

/** A write that the database refuses permanently must end only its own instance. */
let harness: EngineHarness;
let faults: string[];

beforeEach(async () => {
  faults = [];
  const storage = await openStorage("sqlite::memory:");
  const refuse = async (table: string, condition: string): Promise<unknown> =>
    sql
      .raw(`create trigger refuse_${table} before insert on ${table} when ${condition}
        begin select raise(abort, 'poisoned'); end`)
      .execute(storage.read);
  await refuse("workflow_journal", `new.value like '%poison%'`);
  await refuse("workflow_instances", `new.id = 'poison'`);
  const run = `
    await step.do("before", async () => event.payload.value);
    await step.sleep("s", 300);
    const value = await step.do("a", async () => event.payload.value);
    return step.do("b", async () => value + "!");`;
  harness = await EngineHarness.start(run, { storage, onFault: (error) => faults.push(String(error)) });
});
afterEach(() => harness.close());

const ends = async (ids: readonly string[], values: readonly string[]) => {
  const rows = await Promise.all(ids.map(async (id, i) => harness.create(id, { value: values[i] })));
  return Promise.all(rows.map(async ({ rid }) => harness.ended(rid)));
};

it("an instance whose result the database refuses ends, and its neighbours continue", async () => {
  const ids = Array.from({ length: 20 }, (_, i) => `i${i}`);
  const results = await ends(
    ids,
    ids.map((id) => (id === "i7" ? "poison" : id)),
  );
  const error = {
    name: "WorkflowInternalError",
    message: "The database refuses the writes of this instance",
  };
  for (const [i, id] of ids.entries())
    expect(results[i]).toEqual(
      id === "i7"
        ? { status: "errored", output: undefined, error }
        : { status: "complete", output: `${id}!`, error: undefined },
    );
  expect(faults).toEqual(["Error: The database refuses the write"]);
  expect(await ends(["later"], ["x"])).toMatchObject([{ status: "complete" }]);
  const [{ rid }] = [await harness.row(8)];
  await expect(harness.engine.operations.sendEvent(rid, "t", 'j"x"')).rejects.toThrow("inFiniteState");
});

it("an instance that cannot be created does not prevent others", async () => {
  const made = await Promise.allSettled(
    ["one", "poison", "two"].map(async (id) => harness.create(id, { value: id })),
  );
  expect(made.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(made[1]).toMatchObject({ reason: expect.any(RefusedWriteError) as unknown });
});

describeStorage("permanent refusals of a database", (open) => {
  let storage: Storage;
  afterEach(() => storage.close());

  it("are distinguished from an unreachable database", async () => {
    storage = await open();
    const store = instanceStore(storage, "test");
    const event = { rid: 1, number: 1, type: "t", payload: null as unknown as string, at: 1 };
    const batch = merge([{ kind: "event", row: event }]);
    await sql`insert into workflow_events (rid, number, type, payload, at) values (1, 0, 't', '', 1)`.execute(
      storage.read,
    );
    if (storage.engine === "postgres")
      await sql`update workflow_shards set owner = 'test', term = 1, lease_until = now() + interval '1 minute' where id = 0`.execute(
        storage.read,
      );
    await expect(store.commit(batch, [{ shard: 0, term: 1 }])).rejects.toBeInstanceOf(RefusedWriteError);
    await sql`drop table workflow_events`.execute(storage.read);
    await expect(store.commit(batch, [{ shard: 0, term: 1 }])).rejects.not.toBeInstanceOf(RefusedWriteError);
  });
});
