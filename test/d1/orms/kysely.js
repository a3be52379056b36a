import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { D1Dialect } from "kysely-d1";

/* A script with Kysely: tables, rows, joins, and what D1 refuses. Each path is a task. */
const tasks = {
  async create(db) {
    await db.schema
      .createTable("people")
      .addColumn("id", "integer", (column) => column.primaryKey().autoIncrement())
      .addColumn("name", "text", (column) => column.notNull().unique())
      .addColumn("age", "integer")
      .execute();
    await db.schema
      .createTable("pets")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("owner", "integer", (column) => column.references("people.id"))
      .addColumn("name", "text")
      .execute();
  },
  async migrate(db) {
    const migrator = new Migrator({ db, provider: { getMigrations: async () => ({}) } });
    return String((await migrator.migrateToLatest()).error);
  },
  async insert(db) {
    const one = await db.insertInto("people").values({ name: "first", age: 36 }).executeTakeFirst();
    const two = await db.insertInto("people").values({ name: "second", age: null }).returningAll().execute();
    await db.insertInto("pets").values({ owner: 1, name: "pet" }).execute();
    return [String(one.insertId), String(one.numInsertedOrUpdatedRows), two];
  },
  join: async (db) =>
    db
      .selectFrom("people")
      .leftJoin("pets", "pets.owner", "people.id")
      .select(["people.name", "pets.name as pet"])
      .orderBy("people.id")
      .execute(),
  update: async (db) =>
    String(
      (await db.updateTable("people").set({ age: 40 }).where("age", "is", null).executeTakeFirst())
        .numUpdatedRows,
    ),
  window: async (db) =>
    (await sql`select row_number() over (order by name desc) as n, name from people`.execute(db)).rows,
  transaction: async (db) =>
    db
      .transaction()
      .execute(async (trx) => trx.selectFrom("people").selectAll().execute())
      .then(
        () => "done",
        (error) => error.message,
      ),
  remove: async (db) => String((await db.deleteFrom("pets").executeTakeFirst()).numDeletedRows),
};

export default {
  async fetch(request, env) {
    const db = new Kysely({ dialect: new D1Dialect({ database: env.DB }) });
    const task = tasks[new URL(request.url).pathname.slice(1)];
    return Response.json((await task(db)) ?? null);
  },
};
