import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startOutside, type Outside } from "../runtime/platform.ts";
import { describeRecreation, eventually, placeOf, type Place } from "./platform.ts";

const finals = ["complete", "errored", "terminated"];

/** A script whose workflow returns a constant of the script and its secret. */
const script = (name: string, run: string): { code: string; bindings: object[] } => ({
  code: `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Main extends WorkflowEntrypoint {
  async run(event, step) { const me = ["${name}", this.env.SECRET]; ${run} }
}
export default {};`,
  bindings: [{ type: "secret_text", name: "SECRET", text: `secret of ${name}` }],
});
const result = "return await step.do('who', async () => me);";
const waiting =
  "await step.waitForEvent('go', { type: 'go', timeout: '1 hour' }); return await step.do('who', async () => me);";

const put = (at: Place, workflow: string, from: string): Promise<unknown> =>
  at.api("PUT", `/workflows/${workflow}`, { script_name: from, class_name: "Main" });
const create = (at: Place, workflow: string, id: string): Promise<unknown> =>
  at.api("POST", `/workflows/${workflow}/instances`, { id });
const status = (at: Place, workflow: string, id: string) =>
  at.api("GET", `/workflows/${workflow}/instances/${id}/status`) as Promise<{
    status: string;
    output: unknown;
  }>;
async function until(at: Place, workflow: string, id: string, statuses: readonly string[]) {
  await eventually(async () => statuses.includes((await status(at, workflow, id)).status));
  return status(at, workflow, id);
}

describeRecreation("workflows", { workflowLingerMs: 20, privateNetworks: "all" }, (at) => {
  it("a workflow created after another was deleted runs its own code with its own secrets", async () => {
    const { own, places } = at();
    for (const [i, { place }] of places.entries()) {
      await own.deploy("sa", script("sa", result) as never);
      await put(own, "first", "sa");
      await create(own, "first", "one");
      expect((await until(own, "first", "one", finals)).output).toEqual(["sa", "secret of sa"]);
      await own.api("DELETE", "/workflows/first");
      const name = `second-${i}`;
      await place.deploy("sb", script("sb", result) as never);
      await put(place, name, "sb");
      expect(await place.api("GET", `/workflows/${name}/instances`)).toEqual([]);
      expect(await place.api("GET", `/workflows/${name}/versions`)).toHaveLength(1);
      await create(place, name, "one");
      expect((await until(place, name, "one", finals)).output).toEqual(["sb", "secret of sb"]);
    }
  });

  it("an instance with the id of a deleted one has none of its steps, events or followers", async () => {
    const { own } = at();
    await own.deploy("waits", script("waits", waiting) as never);
    await put(own, "waits", "waits");
    const instance = "/workflows/waits/instances/one";
    await create(own, "waits", "one");
    await until(own, "waits", "one", ["waiting"]);
    await own.api("POST", `${instance}/events`, { type: "other", payload: "of the first" });
    const { events } = await follow(own, instance);
    await own.api("DELETE", instance);
    await create(own, "waits", "one");
    expect((await until(own, "waits", "one", ["waiting"])).output).toBeNull();
    expect(await events).toMatch(/event: deleted/);
    await own.api("POST", `${instance}/events`, { type: "go" });
    await until(own, "waits", "one", finals);
    const details = (await own.api("GET", instance)) as { steps: { name: string }[] };
    expect(details.steps.map(({ name }) => name)).toEqual(["go-1", "who-1"]);
    expect(await journalRows(own)).toEqual(await rowsOfInstances(own));
  });

  it("a running instance ends when its workflow or account is deleted, and leaves nothing behind", async () => {
    const { own, nodes } = at();
    const last = nodes.at(-1)!;
    const made = await own.server.call("POST", "/accounts", { name: "short-lived", type: "standard" });
    const { id } = made.body.result as { id: string };
    const account = await placeOf(own.server, id);
    const endless = `for (let i = 0; ; i++) await step.do("s" + i, async () => {
      await (await fetch("${outside.url}/" + me[0])).text();
    });`;
    for (const [place, name] of [
      [own, "workflow"],
      [account, "account"],
    ] as const) {
      await place.deploy(name, script(name, endless) as never);
      await put(place, name, name);
      await create(place, name, "one");
      await eventually(async () => outside.seen.filter((line) => line.endsWith(`/${name}`)).length > 3);
    }
    await own.api("DELETE", "/workflows/workflow");
    expect((await own.server.call("DELETE", `/accounts/${id}`)).status).toBe(200);
    await eventually(async () => !(await hasOrphans(own)));
    const seen = outside.seen.length;
    // Another instance completes on each node, by which time the deleted ones would have progressed too.
    for (const [i, node] of nodes.entries()) {
      await create(node, "waits", `after-${i}`);
      await until(node, "waits", `after-${i}`, ["waiting"]);
    }
    expect(outside.seen.length - seen).toBeLessThanOrEqual(2); // one of each was in progress
    expect(await hasOrphans(last)).toBe(false);
    expect(await journalRows(own)).toEqual(await rowsOfInstances(own));
  });
});

let outside: Outside;
beforeAll(async () => {
  outside = await startOutside((_request, response) => response.end("ok"));
});
afterAll(() => outside.close());

/** `events` has all events that an instance's follower gets until the stream ends. */
async function follow({ server, account }: Place, path: string): Promise<{ events: Promise<string> }> {
  const response = await fetch(`${server.ready.api}/accounts/${account}${path}/subscribe`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  return { events: response.text() };
}

const read = ({ server }: Place) => server.services.workflowInstances.read;
/** The numbers of instances, of instances with steps, and of instances without a workflow. */
async function rowsOfInstances(at: Place): Promise<number[]> {
  const rows = await read(at)
    .selectFrom("workflow_instances")
    .select("rid")
    .where("rid", "in", await journalRows(at).then((rids) => (rids.length === 0 ? [0] : rids)))
    .orderBy("rid")
    .execute();
  return rows.map(({ rid }) => rid);
}
async function journalRows(at: Place): Promise<number[]> {
  const rows = await read(at)
    .selectFrom("workflow_journal")
    .select("rid")
    .distinct()
    .orderBy("rid")
    .execute();
  return rows.map(({ rid }) => rid);
}
async function hasOrphans(at: Place): Promise<boolean> {
  const rows = await read(at)
    .selectFrom("workflow_instances")
    .select("rid")
    .where("workflow_rid", "not in", (eb) => eb.selectFrom("workflows").select("rid"))
    .execute();
  return rows.length > 0;
}
