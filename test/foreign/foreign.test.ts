import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Operation } from "../../src/control/api/operation.ts";
import { operations } from "../../src/capabilities.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { uploadForm } from "../runtime/platform.ts";
import { namingFields, references, type Reference } from "./references.ts";
import { createWorld, type World } from "./world.ts";

/**
 * Two accounts with one resource of each kind. A token with all permissions on the first account names
 * resources of the second, in every path parameter and in every field with a reference. It gets nothing, and
 * the second account stays unchanged.
 */
let server: TestServer;
let own: World;
let other: World;
let before: Map<string, unknown>;
const folder = mkdtempSync(join(tmpdir(), "selvedge-foreign-"));

beforeAll(async () => {
  server = await startTestServer({ acmeDirectory: "https://127.0.0.1:1/directory" });
  own = await createWorld(server, "own", folder);
  other = await createWorld(server, "other", folder);
  await server.call("POST", `/accounts/${own.ids["account_id"]}/queues`, { queue_name: "dead" });
  const instance = pathOf(find("workflow_instance_get"), other, {});
  await vi.waitFor(async () =>
    expect((await server.call("GET", instance)).body.result.status).toBe("complete"),
  );
  before = await everythingOf(other);
});
afterAll(async () => {
  await server.close(1000);
  rmSync(folder, { recursive: true });
});

const find = (id: string): Operation => operations.find((operation) => operation.id === id)!;
const parametersOf = ({ path }: Operation): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);

function pathOf(operation: Operation, world: World, ids: Record<string, string | undefined>): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (ids[name] !== undefined) return ids[name];
    if (name === "script_name" && operation.path.includes("/dispatch/")) return world.ids["customer_name"]!;
    if (name === "version_id" && operation.path.includes("/workflows/"))
      return world.ids["workflow_version_id"]!;
    if (name === "subscription_id" || name === "plan_id") return "f".repeat(32);
    return world.ids[name] ?? (name === "phase" ? "http_request_origin" : `${world.label}-${name}`);
  });
}

/** The results of all reads in a world, by operation, without values that change by themselves. */
async function everythingOf(world: World): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (const operation of operations) {
    // Their state changes by itself.
    if (/certificate_pack|^ssl_verification/.test(operation.id)) continue;
    if (operation.method !== "GET" || operation.answer === "raw" || operation.id.startsWith("user_"))
      continue;
    const { body } = await server.call("GET", pathOf(operation, world, {}));
    const result: unknown = operation.id.startsWith("audit_log") ? byForeigner(body.result) : body.result;
    if (operation.path.includes("{")) found.set(operation.id, settled(result));
  }
  return found;
}

/** The entries of an audit log that the foreign token has left; the owner's own calls and the system leave others. */
const byForeigner = (entries: unknown): unknown =>
  Array.isArray(entries)
    ? entries.filter((each) => JSON.stringify(each).includes('"token_name":"own"'))
    : entries;

/** Times, and traces of the token's use. */
function settled(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (key, each: unknown) =>
      /last_used_on|checked_on|next_on|seen|_ms$|checked_time|expires_at|^since$|^until$/.test(key)
        ? undefined
        : each,
    ),
  );
}

async function send(
  token: string,
  operation: Operation,
  path: string,
  { body, form, query }: ReturnType<Reference["send"]>,
): Promise<{ status: number; body: { success: boolean; result: unknown; errors: unknown[] } }> {
  const search = query === undefined ? "" : `?${new URLSearchParams(query).toString()}`;
  const response = await fetch(`${server.ready.api}${path}${search}`, {
    method: operation.method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(form === undefined ? (body === undefined ? {} : { body: JSON.stringify(body) }) : { body: form }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const isEnvelope = isJson && text.startsWith('{"');
  const plain = { success: response.ok, result: text, errors: [] };
  return { status: response.status, body: isEnvelope ? (JSON.parse(text) as typeof plain) : plain };
}

describe("fields with references", () => {
  /** Fields that clients send back without effect, and values without an owner. */
  const ignored: readonly [operation: RegExp, fields: RegExp][] = [
    [/^user_audit_log_list$/, /^query\.id$/], // the user's own entries, in all accounts
    [/^audit_log_list_v2$/, /^query\.(actor_id|actor_token_id|raw_cf_ray_id)$/], // data of callers
    [/^dns_record_/, /^body\.((patches|puts|posts)\.)?(id|zone_id|zone_name)$/],
    [/^dns_record_scan_review$/, /^body\.rejects\.id$/],
    [/^(user|account)_token_/, /^body\.(id|policies\.(id|permission_groups\.id))$/],
    [/^user_token_/, /^body\.policies\.resources$/], // a user's tokens reach the accounts of the user: test/tokens
    [/^account_update$|^ruleset_(update|rule_edit)$|^script_deployment_create$|^route_/, /^body\.id$/],
    [/^member_update$/, /^body\.(id|roles\.id)$/], // all accounts have the same roles
    [/^zone_edit$/, /^body\.plan\.id$/],
    [/^zone_settings_edit$/, /^body\.items\.id$/], // names of settings
    [/^zone_dns_settings_edit$/, /reference_zone_id$/], // refused by name
    [/^custom_certificate_/, /^body\.custom_csr_id$/], // refused by name
    [/^(ruleset|snippet_rules)/, /^body\.rules\.id$/],
    [/^ruleset_(create|update|entrypoint_put|rule_create|rule_edit)$/, /snippet_name$/], // of the phase of snippets only
    [/^domain_put$/, /^body\.(id|cert_id)$/],
    [/^queue_(create|update|edit)$/, /^body\.(queue_id|queue_name)$/],
    [/^queue_consumer_/, /^body\.(consumer_id|queue_id|queue_name|script)$/],
    [/^queue_consumer_create$/, /./], // as queue_consumer_update
    [/^queue_subscription_/, /./], // there are none
    [/^queue_message_/, /lease_id$/], // of the queue's messages
    [/^outgoing_transfer_create$/, /./], // as outgoing_transfer_update
    [/_(upload|content_put|settings_edit)$|^worker_version_create$/, /jwt$/], // names the script that it is for
    [/_(content_put|settings_edit)$/, /bindings$/], // as uploads
    [/_logpush_job_(create|update)$/, /^body\.id$/],
    [/^image_|^workflow_instance_/, /\.(id|instance_id)$/], // made by the client, in the account
  ];

  it.each(operations.map((operation) => [operation.id, operation] as const))(
    "of %s are tried",
    (id, operation) => {
      const tried = new Set(references.flatMap((each) => (each.operation === id ? each.fields : [])));
      const missing = namingFields(operation).filter(
        (field) => !tried.has(field) && !ignored.some(([of, fields]) => of.test(id) && fields.test(field)),
      );
      expect(missing).toEqual([]);
    },
  );

  it.each(references.map((each, i) => [each.operation, each.fields.join(", "), i] as const))(
    "%s: %s (%i)",
    async (id, _fields, index) => {
      const { path, send: request, answer } = references[index]!;
      const operation = find(id);
      const where = pathOf(operation, own, path?.(own) ?? {});
      const refused = await send(own.token, operation, where, request(other, own));
      if (answer === "filter") expect(refused.body).toMatchObject({ success: true, result: [] });
      else {
        expect(refused.body).toMatchObject({ success: false });
        expect([400, 403, 404, 409]).toContain(refused.status);
      }
      // The same request with the account's own resource succeeds, so the reference was the only reason.
      const taken = await send(own.token, operation, where, request(own, own));
      expect(taken.body).toMatchObject({ success: true, errors: [] });
      if (answer === "filter") expect(taken.body.result).not.toEqual([]);
    },
  );
});

describe("parameters of paths", () => {
  const isName = (parameter: string): boolean => parameter.endsWith("_name");
  const walked = operations.filter(
    ({ path, access, id }) =>
      access.scope !== "user" && access.scope !== "own" && path.includes("}/") && id !== "asset_upload",
  );
  /** Runs before anything is created under a name that the second account uses too. */
  const order = ["GET", "PATCH", "DELETE", "POST", "PUT"];
  walked.sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
  /**
   * Names in paths that are equal for all accounts, unknown before their first use, or can be deleted without
   * existing.
   */
  const words = new Set(["phase", "tag_name", "event_type", "key_name", "role_id"]);
  it.each(walked.map((operation) => [operation.id, operation] as const))("%s", async (_id, operation) => {
    const [container, ...parameters] = parametersOf(operation);
    const foreign = pathOf(operation, other, { [container!]: own.ids[container!] });
    const named = parameters.filter((parameter) => !words.has(parameter));
    const parts = [...named.map((parameter) => [parameter]), named].filter(({ length }) => length > 0);
    for (const part of parts) {
      const ids = Object.fromEntries(
        part.map((name) => [
          name,
          name === "script_name" && operation.path.includes("/dispatch/")
            ? other.ids["customer_name"]
            : other.ids[name],
        ]),
      );
      const path = pathOf(operation, own, ids);
      const { body, status } = await send(own.token, operation, path, bodyFor(operation));
      const creates = (operation.method === "PUT" || operation.method === "POST") && part.every(isName);
      const probes = /probe|permission_groups|_put$/.test(operation.id);
      if (creates || probes) continue; // a name alone proves nothing: the second account is checked below
      expect([path, status, body.success]).toEqual([path, expect.any(Number), false]);
      expect([400, 403, 404, 409, 415]).toContain(status);
    }
    // The unchanged path of the second account.
    const theirs = pathOf(operation, other, {});
    expect(foreign).not.toBe(theirs);
    const { status } = await send(own.token, operation, theirs, bodyFor(operation));
    if (operation.access.scope !== "caller") expect([theirs, status]).toEqual([theirs, 403]);
  });

  it("the second account is unchanged", async () => {
    const after = await everythingOf(other);
    for (const [id, value] of before) expect([id, after.get(id)]).toEqual([id, value]);
    expect(before.size).toBeGreaterThan(80);
  });
});

describe("a token for the account's scripts and one of two zones", () => {
  const call = (token: string, method: string, path: string, body?: unknown) =>
    server.call(method, path, body, { authorization: `Bearer ${token}` });
  const hosts = ["first.example", "second.example"].map((zone) => `www.${zone}`);
  let account: string;
  let domains: { id: string; hostname: string }[];
  let zones: string[];
  let token: string;

  beforeAll(async () => {
    account = `/accounts/${server.ready.account_id}`;
    await server.client.put(`${account}/workers/scripts/two`, {
      body: uploadForm("export default { fetch() {} }"),
    });
    zones = await Promise.all(["first.example", "second.example"].map((name) => server.newZone(name)));
    const put = (hostname: string) =>
      server.call("PUT", `${account}/workers/domains`, { hostname, service: "two" });
    domains = (await Promise.all(hosts.map(put))).map(({ body }) => body.result);
    const routes = hosts.map((host) => `${host}/routed`);
    await server.call("PUT", `${account}/workers/scripts/two/routes`, routes);
    const policy = (resource: string, name: string): object => ({
      effect: "allow",
      resources: { [resource]: "*" },
      permission_groups: [{ name }],
    });
    const base = "com.cloudflare.api.account";
    const policies = [
      policy(`${base}.${server.ready.account_id}`, "Workers Scripts Write"),
      policy(`${base}.zone.${zones[0]}`, "Workers Routes Write"),
    ];
    token = (await server.call("POST", "/user/tokens", { name: "one", policies })).body.result
      .value as string;
  });

  it("changes nothing in the other zone", async () => {
    const [first, second] = hosts as [string, string];
    const refused = { status: 403, body: { errors: [{ code: 10000 }] } };
    const script = `${account}/workers/scripts/two`;
    for (const [method, path, body] of [
      ["DELETE", `${account}/workers/domains/${domains[1]!.id}`, undefined],
      ["PUT", `${account}/workers/domains`, { hostname: second, service: "two" }],
      ["PUT", `${account}/workers/domains`, { hostname: "new.second.example", service: "two" }],
      // Omitting it removes it.
      ["PUT", `${script}/domains/records`, { override_scope: true, origins: [{ hostname: first }] }],
      ["PUT", `${script}/routes`, [`${first}/other`]],
      ["PUT", `${script}/routes`, []],
    ] as const)
      expect(await call(token, method, path, body)).toMatchObject(refused);
    const left = (await server.call("GET", `${account}/workers/domains`)).body.result as object[];
    expect(left).toHaveLength(2);
    for (const zone of zones)
      expect((await server.call("GET", `/zones/${zone}/workers/routes`)).body.result).toHaveLength(1);
  });

  it("changes its own zone", async () => {
    const path = `${account}/workers/domains`;
    expect((await call(token, "DELETE", `${path}/${domains[0]!.id}`)).status).toBe(200);
    expect((await call(token, "PUT", path, { hostname: hosts[0], service: "two" })).status).toBe(200);
  });
});

/** A body that is as well-formed as possible, so that only the ids can be rejected. */
function bodyFor(operation: Operation): ReturnType<Reference["send"]> {
  const known = references.find((each) => each.operation === operation.id);
  if (known !== undefined) return known.send(own, own);
  if (operation.body === undefined || operation.bodyKind === "form") return {};
  const samples: Record<string, unknown> = {
    dns_record_replace: { type: "A", name: "x", content: "192.0.2.3", ttl: 60 },
    zone_transfer_acl_update: { name: "n", ip_range: "192.0.2.0/24" },
    zone_transfer_tsig_update: { name: "n", algo: "hmac-sha256.", secret: "c2VjcmV0" },
    ruleset_rule_create: { action: "route", expression: "ssl", action_parameters: { origin: { port: 1 } } },
    queue_message_push: { body: "x" },
    queue_message_push_batch: { messages: [{ body: "x" }] },
    queue_message_ack: { acks: [], retries: [] },
    queue_update: { queue_name: "renamed" },
    image_variant_edit: { options: { fit: "cover", width: 1, height: 1, metadata: "none" } },
    workflow_instance_status_edit: { status: "terminate" },
    workflow_instance_create_batch: [{ instance_id: "x" }],
    workflow_instance_delete_batch: { instances: ["other-instance"] },
    workflow_instance_terminate_batch: ["other-instance"],
    script_secret_put: { name: "S", text: "s", type: "secret_text" },
    dispatch_script_secret_put: { name: "S", text: "s", type: "secret_text" },
    kv_bulk_put: [{ key: "k", value: "v" }],
    kv_bulk_delete: ["k"],
    kv_bulk_delete_old: ["k"],
    kv_bulk_get: { keys: ["k"] },
    script_tags_put: ["t"],
    dispatch_script_tags_put: ["t"],
  };
  return { body: samples[operation.id] ?? {} };
}
