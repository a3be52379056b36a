import { account, call, hostOf, uploadScript, visit } from "../api.js";

/* Deploys a script with a class of objects. Then ten guests ask for the same seat at once. It can be run again. */
const scripts = await call("GET", `${account}/workers/scripts`);
const tag = scripts.find(({ id }) => id === "seats")?.migration_tag;
await uploadScript(`${account}/workers/scripts/seats`, new URL("seats.js", import.meta.url), {
  bindings: [{ type: "durable_object_namespace", name: "SHOWS", class_name: "Show" }],
  // The first upload creates the class. Later ones keep it.
  ...(tag === undefined ? { migrations: { new_tag: "v1", new_sqlite_classes: ["Show"] } } : {}),
});

const host = await hostOf("seats");
const show = `show-${Date.now()}`;
const guests = Array.from({ length: 10 }, (_, number) => `guest-${number}`);
const answers = await Promise.all(
  guests.map((guest) => visit(host, `/${show}/A1?guest=${guest}`, { method: "PUT" })),
);
const winners = answers.filter(({ status }) => status === 200).length;
const holders = new Set(answers.map(({ body }) => body)).size;
console.log(`${winners} of ${guests.length} guests got the seat, and all answers name ${holders} guest`);
