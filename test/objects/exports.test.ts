import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, uploadForm, type Hosting } from "../runtime/platform.ts";

/** Classes of Durable Objects that an upload declares in `exports`, with the public scenarios. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = (names: readonly string[]): string => `import { DurableObject } from "cloudflare:workers";
class Any extends DurableObject {
  add() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; }
}
${names.map((name) => `export class ${name} extends Any {}`).join("\n")}
export default { async fetch(request, env) {
  const [, name] = new URL(request.url).pathname.split("/");
  try { return Response.json(await env[name].getByName("x").add()); } catch (error) { return Response.json(error.message); }
} };`;
const bindingOf = (name: string, more = {}) => ({
  type: "durable_object_namespace",
  name,
  class_name: name,
  ...more,
});
const live = { type: "durable-object", storage: "sqlite" };
const gone = { type: "durable-object", state: "deleted" };
const renamed = (renamed_to: string) => ({ type: "durable-object", state: "renamed", renamed_to });
const transferred = (transferred_to: string) => ({
  type: "durable-object",
  state: "transferred",
  transferred_to,
});
const expecting = (transfer_from: string) => ({ ...live, state: "expecting-transfer", transfer_from });

interface UploadResult {
  status: number;
  errors: { code: number; message: string; meta?: { details: { class: string; scenario: string }[] } }[];
  result?: { exports_reconciliation?: Record<string, unknown> };
}
async function upload(
  script: string,
  names: readonly string[],
  exports: object | undefined,
  { bindings = names.map((name) => bindingOf(name)), more = {}, path = `scripts/${script}` } = {},
): Promise<UploadResult> {
  const metadata = { ...(exports && { exports }), ...more };
  const body = uploadForm({ code: code(names), bindings, metadata });
  const response = await fetch(`${hosting.ready.api}/accounts/${hosting.account}/workers/${path}`, {
    method: path.endsWith("versions") ? "POST" : "PUT",
    headers: { authorization: `Bearer ${ownerToken}` },
    body,
  });
  return { status: response.status, ...((await response.json()) as object) } as UploadResult;
}
const scenarios = ({ errors }: UploadResult): unknown => {
  expect(errors).toHaveLength(1);
  expect(errors[0]!.code).toBe(100402);
  return errors[0]!.meta!.details.map(({ class: name, scenario }) => [name, scenario]);
};
const changes = ({ status, result, errors }: UploadResult): unknown => {
  expect(errors).toEqual([]);
  expect(status).toBe(200);
  const { warnings: _, updated: __, info, ...all } = result!.exports_reconciliation!;
  const shown = { ...all, info: (info as { scenario: string }[]).map(({ scenario }) => scenario) };
  return Object.fromEntries(Object.entries(shown).filter(([, list]) => list.length > 0));
};
const ask = async (script: string, name: string): Promise<unknown> =>
  JSON.parse((await hosting.ask(script, `/${name}`)).body);
const ids = async (): Promise<Record<string, string>> => {
  const { body } = await hosting.call(
    "GET",
    `/accounts/${hosting.account}/workers/durable_objects/namespaces`,
  );
  return Object.fromEntries(
    (body.result as { name: string; id: string }[]).map(({ name, id }) => [name, id]),
  );
};

it("classes are created, confirmed, renamed and deleted as declared, and keep their data", async () => {
  expect(changes(await upload("one", ["A", "B"], { A: live, B: live }))).toEqual({ created: ["A", "B"] });
  expect([await ask("one", "A"), await ask("one", "A")]).toEqual([1, 2]);
  expect(changes(await upload("one", ["A", "B"], { A: live, B: live }))).toEqual({});
  const { one_A: id } = await ids();
  const next = { A: renamed("C"), C: live, B: gone };
  expect(changes(await upload("one", ["C"], next))).toEqual({
    renamed: [{ from: "A", to: "C" }],
    deleted: ["B"],
  });
  expect(await ids()).toEqual({ one_C: id });
  expect(await ask("one", "C")).toBe(3);
  expect(changes(await upload("one", ["C"], next))).toEqual({
    info: ["stale_tombstone", "stale_tombstone"],
    removable_entries: ["B", "A"],
  });
});

it("a class moves to another script when both have declared it", async () => {
  expect(changes(await upload("source", ["M"], { M: live }))).toEqual({ created: ["M"] });
  expect(await ask("source", "M")).toBe(1);
  expect(scenarios(await upload("source", ["M"], { M: transferred("target") }))).toEqual([
    ["M", "transferred_target_missing"],
  ]);
  expect(scenarios(await upload("target", ["M"], { M: expecting("nowhere") }))).toEqual([
    ["M", "phase_one_transfer_source_missing"],
  ]);
  expect(
    scenarios(await upload("target", ["M", "N"], { M: expecting("source"), N: expecting("source") })),
  ).toEqual([["N", "phase_one_transfer_source_namespace_missing"]]);
  expect(changes(await upload("target", ["M"], { M: expecting("source") }))).toEqual({
    transfer_pending: [{ class: "M", from: "source" }],
  });
  // Until then bindings of the target lead to the source's objects.
  expect(await ask("target", "M")).toBe(2);
  const { source_M: id } = await ids();
  const away = { bindings: [] };
  expect(changes(await upload("source", ["M"], { M: transferred("target") }, away))).toEqual({
    transferred: [{ class: "M", phase: "committed", to: "target" }],
    info: ["tombstone_class_still_in_code"],
  });
  expect(await ids()).toMatchObject({ target_M: id });
  expect(await ask("target", "M")).toBe(3);
  expect(changes(await upload("target", ["M"], { M: expecting("source") }))).toEqual({
    info: ["transfer_receive_already_applied"],
  });
  expect(changes(await upload("target", ["M"], { M: live }))).toEqual({});
  expect(await ask("target", "M")).toBe(4);
});

it("what cannot be as declared is refused with the public scenarios, and changes nothing", async () => {
  await upload("bad", ["A", "B"], { A: live, B: live });
  const before = await ids();
  const cases: [string[], object, [string, string][]][] = [
    [["A", "B"], { A: live }, [["B", "provisioned_class_missing_from_config"]]],
    [["A"], { A: live }, [["B", "orphaned_provisioned_namespace"]]],
    [["A"], { A: live, B: live }, [["B", "config_export_not_in_code"]]],
    [["A", "B"], { A: live, B: live, X: live }, [["X", "config_references_nonexistent_class"]]],
    [["A", "B"], { A: live, B: gone }, [["B", "tombstone_delete_class_still_in_code"]]],
    [["A", "B"], { A: renamed("B"), B: live }, [["A", "tombstone_renamed_to_occupied"]]],
    [["A", "B"], { A: renamed("Z"), B: live }, [["A", "invalid_export"]]],
    [["A", "B"], { A: { ...live, storage: "legacy-kv" }, B: live }, [["A", "storage_type_mismatch"]]],
    [["A", "B", "N"], { A: live, B: live, N: { ...live, storage: "legacy-kv" } }, [["N", "invalid_export"]]],
    [["A", "B"], { A: transferred("one"), B: live }, [["A", "transferred_pending_not_found"]]],
    [["A", "B"], { A: expecting("one"), B: live }, [["A", "phase_one_transfer_target_class_provisioned"]]],
  ];
  for (const [names, exports, expected] of cases)
    expect(scenarios(await upload("bad", names, exports, { bindings: [] }))).toEqual(expected);
  await upload("user", [], undefined, { bindings: [bindingOf("B", { script_name: "bad" })] });
  const blocked = await upload("bad", ["A"], { A: live, B: gone }, { bindings: [] });
  expect(scenarios(blocked)).toEqual([["B", "tombstone_delete_blocked_by_external_bindings"]]);
  expect(blocked.errors[0]!.meta!.details[0]).toMatchObject({ referencing_scripts: ["user"] });
  expect(await ids()).toEqual(before);
});

it("exports beside migrations, in a version, of another type or with forbidden fields are refused", async () => {
  const migrations = { new_tag: "v1", new_sqlite_classes: ["A"] };
  const both = await upload("odd", ["A"], { A: live }, { more: { migrations } });
  expect(both.errors[0]!.message).toMatch(/either exports or migrations/);
  await upload("odd", [], undefined);
  const version = await upload("odd", ["A"], { A: live }, { path: "scripts/odd/versions" });
  expect(version.errors[0]!.code).toBe(10211);
  for (const entry of [{ type: "worker" }, { ...gone, storage: "sqlite" }, { type: "durable-object" }, 5]) {
    const { status, errors } = await upload("odd", ["A"], { A: entry }, { bindings: [] });
    expect([status, errors[0]!.code]).toEqual([400, 9207]);
  }
});
