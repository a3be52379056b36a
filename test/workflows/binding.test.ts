import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorkflowHosting, type WorkflowHosting } from "./hosting.ts";

let hosting: WorkflowHosting;
beforeAll(async () => {
  hosting = await startWorkflowHosting();
  await hosting.workflow(
    "greet",
    `const name = await step.do("name", async () => event.payload.name);
     const { payload } = await step.waitForEvent("go", { type: "go" });
     return new Map([[name, payload]]);`,
  );
  // Runs the body of the request with the binding as WF and returns its result.
  await hosting.deploy("caller", {
    code: `const run = {
  async create({ WF }, p) { const i = await WF.create({ id: p.id, params: { name: p.name } }); return [i.id, typeof i.sendEvent]; },
  async generated({ WF }) { return (await WF.create()).id; },
  async status({ WF }, p) { const s = await (await WF.get(p.id)).status(); return { ...s, output: s.output instanceof Map ? [...s.output] : s.output }; },
  async send({ WF }, p) { await (await WF.get(p.id)).sendEvent({ type: p.type, payload: new Date(5) }); },
  async call({ WF }, p) { const i = await WF.get(p.id); await i[p.method](p.options); return (await i.status()).status; },
  async batch({ WF }, p) { const made = await WF.createBatch(p.batch); return Array.isArray(made) ? made.map((i) => i.id) : { created: made.created.map((i) => i.id), errors: made.errors }; },
  async bad({ WF }) { await WF.create({ params: { a: [1, { f() {} }] } }); },
  async unknown({ WF }) { await WF.create({ parms: 1 }); },
  async remove({ WF }, p) { await WF.deleteBatch(p.ids); },
};
export default { async fetch(request, env) {
  const { what, ...p } = await request.json();
  try { return Response.json({ ok: (await run[what](env, p)) ?? null }); }
  catch (error) { return Response.json({ error: error.message, code: error.code ?? null }); }
} };`,
    bindings: [{ type: "workflow", name: "WF", workflow_name: "greet" }],
  });
});
afterAll(() => hosting.close(1000));

async function ask(what: string, more: object = {}): Promise<unknown> {
  const { body } = await hosting.ask("caller", "/", {
    method: "POST",
    body: JSON.stringify({ what, ...more }),
  });
  const answer = JSON.parse(body) as { ok: unknown } | { error: string };
  return "ok" in answer ? answer.ok : answer;
}

it("creates an instance, sends it an event, and reads its output unchanged", async () => {
  expect(await ask("create", { id: "one", name: "first" })).toEqual(["one", "function"]);
  await ask("send", { id: "one", type: "go" });
  await hosting.end("greet", "one");
  expect(await ask("status", { id: "one" })).toEqual({
    status: "complete",
    output: [["first", new Date(5).toISOString()]],
    rollback: null,
  });
  expect(await ask("generated")).toMatch(/^[0-9a-f-]{36}$/);
});

it("throws with the public codes", async () => {
  await ask("create", { id: "two", name: "x" });
  expect(await ask("create", { id: "two", name: "x" })).toEqual({
    error: "(instance.already_exists) Instance already exists",
    code: 10405,
  });
  expect(await ask("status", { id: "nobody" })).toMatchObject({ code: 10400 });
  expect(await ask("create", { id: "a b" })).toMatchObject({
    error: "(instance.invalid_id) Instance ID is invalid",
  });
  expect(await ask("call", { id: "two", method: "terminate" })).toBe("terminated");
  expect(await ask("call", { id: "two", method: "terminate" })).toEqual({
    error: "(instance.cannot_terminate) Cannot terminate instance since its on a finite state",
    code: 10401,
  });
  expect(await ask("send", { id: "two", type: "go" })).toEqual({
    error: "(instance.in_finite_state) Instance reached a finite state, cannot send events to it",
    code: 10402,
  });
  expect(await ask("bad")).toEqual({
    error: "create: params is not serialisable: the value at .a[1].f is a function",
    code: null,
  });
  expect(await ask("unknown")).toMatchObject({
    error: 'create has no option "parms"; it has id, params, retention, locationHint',
  });
});

it("pauses, resumes and restarts", async () => {
  await ask("create", { id: "three", name: "x" });
  await hosting.until("greet", "three", ["waiting"]);
  expect(await ask("call", { id: "three", method: "pause" })).toBe("paused");
  expect(await ask("call", { id: "three", method: "resume" })).toMatch(/queued|running|waiting/);
  expect(await ask("call", { id: "three", method: "restart" })).toMatch(/queued|running|waiting/);
  expect(
    await ask("call", { id: "three", method: "restart", options: { from: { name: "zz" } } }),
  ).toMatchObject({ error: '(instance.cannot_restart) Step "zz" not found in execution history' });
});

it("creates batches: a list skips existing ids, an object reports them", async () => {
  const batch = ["b1", "b2", "b1"].map((id) => ({ id }));
  expect(await ask("batch", { batch })).toEqual(["b1", "b2"]);
  expect(await ask("batch", { batch: { instances: [{ id: "b2" }, { id: "b3" }, { id: "b3" }] } })).toEqual({
    created: ["b3"],
    errors: [
      { index: 0, id: "b2", code: 10405, message: "workflows.api.error.instance.already_exists" },
      { index: 2, id: "b3", code: 10415, message: "workflows.api.error.instance.duplicate_in_batch" },
    ],
  });
  expect((await ask("batch", { batch: { count: 3 } })) as { created: string[] }).toMatchObject({
    errors: [],
  });
  expect(await ask("batch", { batch: [] })).toMatchObject({
    error: "(body) batchCreate should have at least 1 instance",
  });
  expect(await ask("batch", { batch: Array.from({ length: 101 }, () => ({})) })).toMatchObject({
    code: 9207,
  });
  expect(await ask("batch", { batch: [{ id: "new" }, { id: "not ok" }] })).toMatchObject({ code: 10410 });
  expect(await ask("status", { id: "new" })).toMatchObject({ code: 10400 });
  await ask("remove", { ids: ["b1", "b2"] });
  expect(await ask("status", { id: "b1" })).toMatchObject({ code: 10400 });
});

it("is available in a workflow's own steps", async () => {
  await hosting.deploy("parent", {
    code: `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Main extends WorkflowEntrypoint { async run(event, step) {
  const child = await step.do("child", async () => (await this.env.WF.create({ id: "child", params: { name: "c" } })).id);
  await step.do("send", async () => { await (await this.env.WF.get(child)).sendEvent({ type: "go", payload: 1 }); });
  return child;
} }
export default {};`,
    bindings: [{ type: "workflow", name: "WF", workflow_name: "greet" }],
  });
  await hosting.call("PUT", `/accounts/${hosting.account}/workflows/parent`, {
    script_name: "parent",
    class_name: "Main",
  });
  await hosting.create("parent", "p");
  expect(await hosting.end("parent", "p")).toMatchObject({ status: "complete", output: "child" });
  expect(await hosting.end("greet", "child")).toMatchObject({ status: "complete", output: [["c", 1]] });
});
