import { DatabaseSync, type SQLInputValue } from "node:sqlite";

import { describe, expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { KeptCopies } from "./kept-copies.ts";

const schema = `
  create table owners (id text primary key not null, name text not null unique, home blob);
  create table things (number integer primary key autoincrement, owner text not null references owners (id)
    on delete cascade, value any);
  create table entries (a text not null, b integer not null, text text, primary key (a, b)) without rowid;
  create index things_by_owner on things (owner, value);
`;
const tables = ["owners", "things", "entries", "sqlite_sequence"];

function opened(): DatabaseSync {
  const database = new DatabaseSync(":memory:", { enableForeignKeyConstraints: true });
  database.exec(schema);
  return database;
}

/** All rows with their hidden keys. */
const rowsOf = (database: DatabaseSync): object =>
  Object.fromEntries(
    tables.map((table) => [
      table,
      database
        .prepare(`select ${table === "entries" ? "" : "rowid as key, "}* from ${table} order by 1, 2`)
        .all(),
    ]),
  );

type Step = readonly [sql: string, ...values: SQLInputValue[]];

/** Runs a statement; one that breaks a constraint changes nothing. */
function attempt(database: DatabaseSync, [sql, ...values]: Step): void {
  try {
    database.prepare(sql).run(...values);
  } catch {
    // A constraint.
  }
}

const id = fc.constantFrom("a", "b", "c", "d");
const small = fc.integer({ min: 0, max: 5 });
const step = fc.oneof(
  fc.tuple(fc.constant("insert into owners values (?, ?, x'00ff')"), id, id),
  fc.tuple(fc.constant("insert or replace into owners values (?, ?, null)"), id, id),
  fc.tuple(fc.constant("update owners set name = ? where id = ?"), id, id),
  fc.tuple(fc.constant("update owners set id = ? where id = ?"), id, id),
  fc.tuple(fc.constant("delete from owners where id = ?"), id),
  fc.tuple(fc.constant("delete from owners")),
  fc.tuple(fc.constant("insert into things (owner, value) values (?, ?)"), id, small),
  fc.tuple(fc.constant("update things set number = ? where number = ?"), small, small),
  fc.tuple(fc.constant("update things set value = 'x' where value = ?"), small),
  fc.tuple(fc.constant("delete from things where value = ?"), small),
  fc.tuple(fc.constant("insert into entries values (?, ?, ?)"), id, small, id),
  fc.tuple(fc.constant("update entries set a = ?, b = ? where a = ?"), id, small, id),
  fc.tuple(fc.constant("delete from entries where a = ?"), id),
) as fc.Arbitrary<Step>;

describe("copies of all rows", () => {
  it("bring back exactly the rows that they had, in any order", () => {
    const copy = fc.integer({ min: 0, max: 2 });
    const steps = fc.array(step, { maxLength: 12 });
    fc.assert(
      fc.property(
        fc.tuple(steps, steps, steps),
        fc.array(fc.tuple(copy, steps), { maxLength: 8 }),
        (kept, rounds) => {
          const database = opened();
          const copies = new KeptCopies(database);
          const expected = kept.map((before, number) => {
            for (const each of before) attempt(database, each);
            copies.keep(number);
            return rowsOf(database);
          });
          for (const [number, changes] of rounds) {
            for (const each of changes) attempt(database, each);
            copies.bringBack(number);
            expect(rowsOf(database)).toEqual(expected[number]);
          }
          database.close();
        },
      ),
      { numRuns: 100 },
    );
  });

  it("list the rows that were replaced, as they were and as they are", () => {
    const database = opened();
    database.exec("insert into owners values ('a', 'first', null), ('b', 'second', null)");
    const copies = new KeptCopies(database);
    copies.keep(0);
    database.exec(
      "update owners set name = 'third' where id = 'b'; insert into entries values ('x', 1, null)",
    );
    const restored = copies.bringBack(0);
    expect(restored.get("owners")).toMatchObject([{ name: "third" }, { name: "second" }]);
    expect(restored.get("entries")).toMatchObject([{ a: "x" }]);
    expect(restored.get("things")).toBeUndefined();
    expect(copies.bringBack(0).size).toBe(0);
    database.close();
  });

  it("bring back a table of which most rows were written, and note its later rows", () => {
    const database = opened();
    const fill = (from: number): void => {
      for (let i = from; i < from + 1000; i++)
        database.prepare("insert into entries values ('x', ?, null)").run(i);
    };
    fill(0);
    const copies = new KeptCopies(database);
    copies.keep(0);
    const before = rowsOf(database);
    for (let round = 0; round < 2; round++) {
      database.exec("delete from entries");
      fill(500);
      expect(copies.bringBack(0).get("entries")).toBe("many");
      expect(rowsOf(database)).toEqual(before);
    }
    database.exec("delete from entries where b = 7");
    expect(copies.bringBack(0).get("entries")).toMatchObject([{ b: 7 }]);
    expect(rowsOf(database)).toEqual(before);
    database.close();
  });

  it("count only the platform's own rows as changes", () => {
    const database = opened();
    new KeptCopies(database).keep(0);
    const written = (): number => Number(database.prepare("select total_changes() as rows").get()!["rows"]);
    const before = written();
    database.exec("insert into owners values ('a', 'first', null)");
    expect(written() - before).toBe(1);
    database.close();
  });
});
