/**
 * The upload of a script with objects that store numbers of writers. The proofs compare these with the answers: none may be
 * missing or stored twice, and no instance may answer after its successor.
 */
export const ledgerScript = {
  code: `import { DurableObject } from "cloudflare:workers";
export class Ledger extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    sql.exec("create table if not exists writes (writer text, n int)");
    sql.exec("create table if not exists instances (id integer primary key autoincrement)");
    // The number of this instance: each one commits its own before it answers anything.
    this.instance = sql.exec("insert into instances default values returning id").one().id;
  }
  write(writer, n) { this.ctx.storage.sql.exec("insert into writes values (?, ?)", writer, n); return { instance: this.instance }; }
  look() { return { instance: this.instance }; }
  all() { return this.ctx.storage.sql.exec("select writer, n, count(*) as times from writes group by writer, n").toArray(); }
}
export default { async fetch(request, env) {
  const [, name, method, ...args] = new URL(request.url).pathname.split("/");
  try { return Response.json(await env.LEDGERS.getByName(name)[method](...args)); }
  catch (error) { return new Response(error.message, { status: 503 }); }
} };`,
  bindings: [{ type: "durable_object_namespace", name: "LEDGERS", class_name: "Ledger" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Ledger"] } },
};
