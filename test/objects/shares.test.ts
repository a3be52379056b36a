import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { callsOf, startHosting, type Calls, type Hosting } from "../runtime/platform.ts";

/** No account takes the processes of objects away from others, nor from its own databases. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = (classes: readonly string[]): string => `import { DurableObject } from "cloudflare:workers";
${classes
  .map(
    (name) => `export class ${name} extends DurableObject {
  instance = crypto.randomUUID();
  hold() { return new Promise((resolve) => setTimeout(() => resolve("held"), 600000)); }
  say() { return this.instance; }
}`,
  )
  .join("\n")}
export default { async fetch(request, env) {
  const [, name, method] = new URL(request.url).pathname.split("/");
  try {
    if (name === "DB") return Response.json({ ok: await env.DB.prepare("select 1 as one").first("one") });
    return Response.json({ ok: await env[name].getByName("x")[method]() });
  } catch (error) {
    return Response.json({ error: error.message, overloaded: error.overloaded === true });
  }
} };`;

const classesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `Room${i}`);

async function deploy(
  calls: Calls,
  name: string,
  classes: readonly string[],
  more: Record<string, unknown>[] = [],
) {
  const bindings = classes.map((each) => ({
    type: "durable_object_namespace",
    name: each,
    class_name: each,
  }));
  const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: classes } };
  await calls.deploy(name, { code: code(classes), bindings: [...bindings, ...more], metadata });
}
async function createDatabase(account: string, name: string) {
  const { status, body } = await hosting.call("POST", `/accounts/${account}/d1/database`, { name });
  expect(status, JSON.stringify(body)).toBe(200);
  return [{ type: "d1", name: "DB", id: (body.result as { uuid: string }).uuid }];
}
const ask = async (calls: Calls, script: string, path: string): Promise<unknown> =>
  JSON.parse((await calls.ask(script, path)).body);

it("the objects and databases of others, and an account's own databases, answer while it holds its share", async () => {
  const created = await hosting.call("POST", "/accounts", { name: "Victim" });
  const victim = await callsOf(
    { ...hosting.ready, account_id: created.body.result.id as string },
    ownerToken,
  );
  const { objectCells } = hosting.services;
  const classes = classesOf(17);
  const ownDatabase = await createDatabase(hosting.account, "own");
  const held: Promise<unknown>[] = [];
  // Each script needs one id more than the cell before has to spare, and that cell is busy.
  for (let i = 0; i < 5; i++) {
    await deploy(hosting, `greedy${i}`, classes, i === 0 ? ownDatabase : []);
    held.push(ask(hosting, `greedy${i}`, "/Room16/hold").catch(String));
    if (i < 3) await expect.poll(() => objectCells.counts).toEqual({ cells: i + 1, requests: i + 1 });
  }
  const overloaded = {
    error: "Durable Object is overloaded. Requests queued for too long.",
    overloaded: true,
  };
  expect(await Promise.all(held.slice(3))).toEqual([overloaded, overloaded]);
  await deploy(victim, "victim", ["Room"], await createDatabase(victim.account, "theirs"));
  expect(await ask(victim, "victim", "/Room/say")).toEqual({ ok: expect.any(String) });
  expect(await ask(victim, "victim", "/DB")).toEqual({ ok: 1 });
  expect(await ask(hosting, "greedy0", "/DB")).toEqual({ ok: 1 });
  expect(objectCells.counts).toEqual({ cells: 6, requests: 3 });
});

it("an idle cell without ids to spare starts again with the new namespaces", async () => {
  const other = await hosting.call("POST", "/accounts", { name: "Modest" });
  const modest = await callsOf({ ...hosting.ready, account_id: other.body.result.id as string }, ownerToken);
  const { objectCells } = hosting.services;
  const before = objectCells.counts.cells;
  const instances = new Set<unknown>();
  for (const name of ["one", "two", "three"]) {
    await deploy(modest, name, classesOf(17));
    for (const each of ["Room16", "Room0"]) instances.add(await ask(modest, name, `/${each}/say`));
    expect(objectCells.counts.cells).toBe(before + 1);
  }
  expect(instances.size).toBe(6);
  expect(await ask(modest, "one", "/Room0/say")).toEqual({ ok: expect.any(String) });
  expect(objectCells.counts.cells).toBe(before + 1);
});

it("databases that could not be created for their names leave their ids to others", async () => {
  const other = await hosting.call("POST", "/accounts", { name: "Clumsy" });
  const path = `/accounts/${other.body.result.id as string}/d1/database`;
  const create = async (name: string) => (await hosting.call("POST", path, { name })).body;
  const query = async (id: unknown) =>
    (await hosting.call("POST", `${path}/${String(id)}/query`, { sql: "select 1 as one" })).status;
  expect(await query((await create("first")).result.uuid)).toBe(200);
  const { pids } = hosting.services.objectCells;
  for (const name of ["a", "b", "c"]) {
    const answers = await Promise.all(Array.from({ length: 10 }, async () => create(name)));
    expect(answers.filter(({ success }) => success)).toHaveLength(1);
    for (let i = 0; i < 5; i++) expect((await create(name)).success).toBe(false);
  }
  expect(await query((await create("last")).result.uuid)).toBe(200);
  expect(hosting.services.objectCells.pids).toEqual(pids);
});
