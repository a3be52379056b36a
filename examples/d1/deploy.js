import { account, call, hostOf, uploadScript, visit } from "../api.js";

/* Creates a database and its table, and deploys a script that uses it. It can be run again. */
const databases = await call("GET", `${account}/d1/database?name=guestbook`);
const database =
  databases.find(({ name }) => name === "guestbook") ??
  (await call("POST", `${account}/d1/database`, { name: "guestbook" }));
const query = (sql, params = []) =>
  call("POST", `${account}/d1/database/${database.uuid}/query`, { sql, params });
await query(
  "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL)",
);

await uploadScript(`${account}/workers/scripts/guestbook`, new URL("guestbook.js", import.meta.url), {
  bindings: [{ type: "d1", name: "BOOK", id: database.uuid }],
});

// The script writes over its binding. The API reads the same database.
const host = await hostOf("guestbook");
await visit(host, "/", { method: "POST", body: JSON.stringify({ name: "guest", text: "What a view!" }) });
const { body } = await visit(host);
const [{ results }] = await query("SELECT count(*) AS entries FROM entries WHERE name = ?", ["guest"]);
console.log(JSON.parse(body)[0], results[0].entries > 0);
