import { count, eq, gt, sql, sum } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { migrate } from "drizzle-orm/d1/migrator";
import { relations } from "drizzle-orm/relations";
import { blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

/* A script with Drizzle: migrations, rows of many types, joins, relations, batches. Each path is a task. */
const customers = sqliteTable("customers", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  name: text("name").notNull().unique(),
  since: integer("since", { mode: "timestamp_ms" }).notNull(),
  isActive: integer("is_active", { mode: "boolean" }).notNull().default(true),
  settings: text("settings", { mode: "json" }),
});
const orders = sqliteTable("orders", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  customerId: integer("customer_id")
    .notNull()
    .references(() => customers.id, { onDelete: "cascade" }),
  amount: real("amount").notNull(),
  receipt: blob("receipt", { mode: "buffer" }),
  note: text("note"),
});
const customersOrders = relations(customers, ({ many }) => ({ orders: many(orders) }));
const ordersCustomer = relations(orders, ({ one }) => ({
  customer: one(customers, { fields: [orders.customerId], references: [customers.id] }),
}));
const schema = { customers, orders, customersOrders, ordersCustomer };
const open = (binding) => drizzle(binding, { schema });

const tasks = {
  async migrate(db) {
    await migrate(db, { migrationsFolder: "migrations" });
    return db.values(sql`select count(*) from __drizzle_migrations`);
  },
  insert: async (db) =>
    db
      .insert(customers)
      .values([
        { name: "first", since: new Date(1_000), settings: { tags: ["a; b", "ü"] } },
        { name: "second", since: new Date(2_000), isActive: false },
      ])
      .returning(),
  async batch(db) {
    const [inserted, , total] = await db.batch([
      db
        .insert(orders)
        .values({ customerId: 1, amount: 1.5, receipt: Buffer.from([0, 255]), note: "first" })
        .returning({ id: orders.id }),
      db.insert(orders).values({ customerId: 2, amount: 2 }),
      db.select({ total: sum(orders.amount) }).from(orders),
    ]);
    return [inserted, total];
  },
  async rollback(db) {
    const failed = await db
      .batch([
        db.insert(customers).values({ name: "nobody", since: new Date() }),
        db.insert(customers).values({ name: "first", since: new Date() }),
      ])
      .then(
        () => "done",
        (error) => error.cause.message,
      );
    return [failed, await db.$count(customers)];
  },
  join: async (db) =>
    db
      .select({ name: customers.name, orders: count(orders.id) })
      .from(customers)
      .leftJoin(orders, eq(orders.customerId, customers.id))
      .where(gt(orders.amount, 1))
      .groupBy(customers.name)
      .orderBy(customers.name),
  relations: async (db) =>
    db.query.customers.findMany({ with: { orders: { columns: { amount: true, note: true } } } }),
  upsert: async (db) =>
    db
      .insert(customers)
      .values({ name: "first", since: new Date(3_000) })
      .onConflictDoUpdate({ target: customers.name, set: { since: new Date(3_000) } })
      .returning({ id: customers.id, since: customers.since }),
  update: async (db) =>
    (await db.update(orders).set({ note: "seen" }).where(gt(orders.amount, 0))).meta.changes,
  prepared: async (db) => {
    const statement = db.query.orders.findFirst({ where: eq(orders.id, sql.placeholder("id")) }).prepare();
    return [(await statement.execute({ id: 1 }))?.note, await statement.execute({ id: 100 })];
  },
  remove: async (db) => {
    await db.delete(customers).where(eq(customers.name, "first"));
    return db.$count(orders);
  },
};

export default {
  async fetch(request, env) {
    const task = tasks[new URL(request.url).pathname.slice(1)];
    return Response.json((await task(open(env.DB))) ?? null);
  },
};
