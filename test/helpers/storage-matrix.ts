import { afterAll, beforeAll, describe } from "vitest";
import { openStorage, type Storage } from "../../src/platform/storage/storage.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";

/** Runs the same tests on SQLite and on PostgreSQL; `open` makes a fresh, empty database each time. */
export function describeStorage(title: string, tests: (open: () => Promise<Storage>) => void): void {
  describe(`${title} on SQLite`, () => tests(() => openStorage("sqlite::memory:")));
  describe(`${title} on PostgreSQL`, () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await startPostgres();
    });
    afterAll(() => postgres.stop());
    tests(async () => openStorage(await postgres.createMigrated()));
  });
}
