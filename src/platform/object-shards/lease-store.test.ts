import { sql } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { startPostgres } from "../../../test/helpers/postgres.ts";
import { openStorage } from "../storage/storage.ts";
import { StoredLeases } from "./lease-store.ts";

it("a node that is suspended in a transaction does not keep others from ending its lease for long", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const storage = await openStorage(await postgres.createMigrated(), 5000);
  onTestFinished(() => storage.close());
  const { read } = storage;
  const { rows } = await sql<{ id: number }>`
    insert into object_nodes (node, run, attempt, address, lease_ms, beats, leaves, has_ended)
    values ('a', 'a', 1, '', 1000, 0, 0, 0) returning id`.execute(read);
  // It reads what the transaction has set for the wait for its client.
  await sql`create function raise_timeout() returns trigger as $$ begin
    raise exception 'ends after %', current_setting('idle_in_transaction_session_timeout'); end $$
    language plpgsql`.execute(read);
  await sql`create trigger raise_timeout after update on object_shards for each row execute function raise_timeout()`.execute(
    read,
  );
  const leases = new StoredLeases(read, { id: "a", run: "a" }, "");
  await expect(leases.take(rows[0]!.id, 1, [])).rejects.toThrow("ends after 5s");
});
