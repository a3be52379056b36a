import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pino } from "pino";
import { z } from "zod";
import { absentProduct } from "../src/control/api/server/absent-products.ts";
import { createApi, type ApiOptions } from "../src/control/api/server/app.ts";
import { operationsFor, type Operation } from "../src/control/api/operation.ts";
import { isParameter } from "../src/control/api/server/paths.ts";
import { operations } from "../src/capabilities.ts";
import { permissionGroups } from "../src/control/access/permissions.ts";
import { startTestServer, type ApiResponse, type TestServer } from "./helpers/server.ts";

const { operation: declare } = operationsFor<object>();

/**
 * Calls every operation with credentials and input that must be rejected. New operations are included
 * automatically.
 */
let server: TestServer;
let zoneId: string;
let narrowToken: string;
let strangerToken: string;

beforeAll(async () => {
  server = await startTestServer();
  zoneId = ((await server.call("POST", "/zones", { name: "contract.example" })).body.result as { id: string })
    .id;
  const [other, third] = await Promise.all(["Other", "Third"].map(createAccount));
  narrowToken = await createToken({ [`com.cloudflare.api.account.${third}`]: "*" }, "Account Settings Read");
  strangerToken = await createAccountToken(other!);
});
afterAll(() => server.close(1000));

const createAccount = async (name: string): Promise<string> =>
  ((await server.call("POST", "/accounts", { name })).body.result as { id: string }).id;

async function createToken(resources: object, group: string): Promise<string> {
  const body = {
    name: "narrow",
    policies: [{ effect: "allow", resources, permission_groups: [{ name: group }] }],
  };
  return ((await server.call("POST", "/user/tokens", body)).body.result as { value: string }).value;
}

/** A token with all permissions of another account, which must have no access to the first. */
async function createAccountToken(accountId: string): Promise<string> {
  const account = `com.cloudflare.api.account.${accountId}`;
  const policies = [
    { scope: "account", resources: { [account]: "*" } },
    { scope: "zone", resources: { [account]: { "com.cloudflare.api.account.zone.*": "*" } } },
  ].map(({ scope, resources }) => ({
    effect: "allow",
    resources,
    permission_groups: permissionGroups.filter((group) => group.scope === scope).map(({ id }) => ({ id })),
  }));
  const body = { name: "stranger", policies };
  return ((await server.call("POST", `/accounts/${accountId}/tokens`, body)).body.result as { value: string })
    .value;
}

const unknownId = "f".repeat(32);
function pathOf(operation: Operation, ids: Record<string, string> = {}): string {
  const known: Record<string, string> = {
    zone_id: zoneId,
    account_id: server.ready.account_id,
    phase: "http_request_origin",
    ...ids,
  };
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? unknownId);
}
/** The operations that require a window of time. */
const requiredQuery = ({ query }: Operation): string =>
  query?.shape["action_time"] === undefined
    ? ""
    : "?since=2020-01-01&before=2100-01-01&action_time=2026-01-01";
const someBody = (operation: Operation): unknown =>
  operation.body === undefined || operation.bodyKind !== "json" ? undefined : {};

const chosenIds = new Set([
  "rule_id",
  "image_id",
  "instance_id",
  "version_id",
  "event_type",
  "database_id",
  "object_id",
  "audit_log_id",
]);
/** Operations that read the body themselves, before they look for the resource. */
const readsBodyFirst = new Set([
  "script_upload",
  "script_tags_put",
  "script_secrets_patch",
  "script_routes_put",
  "script_domains_changeset",
  "script_domains_put",
  "script_schedules_put",
  "worker_version_create",
  "worker_version_patch",
  "dispatch_script_tags_put",
  "dispatch_script_secrets_patch",
]);
/** The status for an unknown id and an empty body, which some operations check first. */
function statusOfUnknown(operation: Operation, parameter: string): 400 | 404 | 415 {
  const { id, body, bodyKind, bodyOptional, acceptAnyContentType = false } = operation;
  // The API finds zones and accounts before it reads the body.
  if (parameter === "zone_id" || parameter === "account_id") return 404;
  if (body === undefined || bodyOptional) return 404;
  if (bodyKind === "json") return body.safeParse({}).success ? 404 : 400;
  if (!acceptAnyContentType) return 415;
  return readsBodyFirst.has(id) ? 400 : 404;
}

function expectFailure(answer: ApiResponse, status: number, code?: number): void {
  expect(answer.body).toMatchObject({ success: false, result: null, messages: [] });
  expect(answer.body.errors.length).toBeGreaterThan(0);
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect([answer.status, ...(code === undefined ? [] : [answer.body.errors[0]!.code])]).toEqual([
    status,
    ...(code === undefined ? [] : [code]),
  ]);
}

describe.each(operations.map((operation) => [operation.id, operation] as const))("%s", (_id, operation) => {
  const call = (
    token: string | undefined,
    ids?: Record<string, string>,
    body = someBody(operation),
  ): Promise<ApiResponse> =>
    server.call(operation.method, pathOf(operation, ids), body, {
      authorization: token === undefined ? "" : `Bearer ${token}`,
    });

  it("rejects a call without credentials", async () => {
    const response = await fetch(`${server.ready.api}${pathOf(operation)}`, { method: operation.method });
    expect(response.status).toBe(401);
    expect(((await response.json()) as ApiResponse["body"]).errors[0]!.code).toBe(9106);
  });

  it("rejects an unknown token", async () => {
    expectFailure(await call("not-a-token-that-anyone-has"), 401, 1000);
  });

  if (operation.access.scope !== "caller" && operation.access.scope !== "own") {
    it("rejects a token without the permission", async () => {
      expectFailure(await call(narrowToken), 403, 9109);
    });

    it("rejects the token of another account", async () => {
      expectFailure(await call(strangerToken), 403, 9109);
    });
  }

  const lastParameter = operation.path.match(/\{(\w+)\}(?!.*\{)/)?.[1];
  const isIdLast = lastParameter !== undefined && lastParameter !== "phase";
  const createsMissing = operation.method === "PUT" && operation.body === undefined;
  if (isIdLast && !["caller", "own"].includes(operation.access.scope) && !createsMissing) {
    const status = statusOfUnknown(operation, lastParameter);
    it(`answers ${status} to an unknown id`, async () => {
      const path = pathOf(operation, { [lastParameter]: unknownId }) + requiredQuery(operation);
      expectFailure(await server.call(operation.method, path, someBody(operation)), status);
    });
  }

  // Names chosen by users are never malformed, only unknown.
  if (isIdLast && !chosenIds.has(lastParameter) && !lastParameter.endsWith("_name")) {
    it("answers 404 to a malformed id", async () => {
      expectFailure(
        await server.call(
          operation.method,
          pathOf(operation, { [lastParameter]: "no-id" }),
          someBody(operation),
        ),
        404,
        7003,
      );
    });
  }

  if (operation.body !== undefined && operation.bodyKind === "json") {
    it("rejects a malformed body, a wrong type, an unknown field, a wrong content type and a body over the limit", async () => {
      const path = pathOf(operation);
      expectFailure(await server.call(operation.method, path, "{", {}), 400, 6007);
      expectFailure(await server.call(operation.method, path, "[]", {}), 400, 9207);
      const unknown = await server.call(operation.method, path, { no_such_field: 1 });
      expectFailure(unknown, 400, 9207);
      expect(unknown.body.errors.some((error) => error.source?.pointer === "/body/no_such_field")).toBe(true);
      if (!operation.acceptAnyContentType)
        expectFailure(
          await server.call(operation.method, path, "{}", { "content-type": "application/xml" }),
          415,
        );
      const limit = operation.bodyBytesMax ?? 1024 * 1024;
      expectFailure(await server.call(operation.method, path, " ".repeat(limit + 1)), 413);
    });
  }

  if (operation.body !== undefined && operation.bodyKind !== "json" && !operation.acceptAnyContentType) {
    it("rejects a body that is not a form", async () => {
      expectFailure(await server.call(operation.method, pathOf(operation), {}), 415);
    });
  }

  if (operation.query?.shape["per_page"] !== undefined) {
    it("rejects an invalid page and names the parameter", async () => {
      const answer = await server.call(operation.method, `${pathOf(operation)}?page=0&per_page=x`);
      expectFailure(answer, 400, 9207);
      expect(answer.body.errors.map((error) => error.source?.pointer)).toEqual(
        ["page", "per_page"].filter((name) => name in operation.query!.shape).map((name) => `/query/${name}`),
      );
    });
  }

  if (operation.answer === "page" && operation.query?.shape["per_page"] !== undefined) {
    it("answers a page past the end with an empty list", async () => {
      const answer = await server.call(operation.method, `${pathOf(operation)}?page=1000`);
      // No resource has the name in the path.
      if (operation.path.includes("_name}")) return expectFailure(answer, 404);
      expect(answer.status).toBe(200);
      expect(answer.body.result).toEqual([]);
      expect(Object.keys(answer.body.result_info!)).toEqual([
        "page",
        "per_page",
        "count",
        "total_count",
        "total_pages",
      ]);
    });
  }
});

it("answers unknown paths in the envelope", async () => {
  for (const path of [
    "/",
    "/zone",
    "/zones/x/y/z",
    "/accounts/1/nothing",
    "/../../etc/passwd",
    "/%2e%2e/zones%00",
  ]) {
    expectFailure(await server.call("GET", path), 404, 7003);
  }
  expectFailure(await server.call("DELETE", "/zones"), 404, 7003);
});

it("names public products that are absent, but no present ones", async () => {
  const account = server.ready.account_id;
  for (const [path, product] of [
    [`/accounts/${account}/r2/buckets/x/objects`, "R2 is"],
    [`/accounts/${account}/pages/projects`, "Pages is"],
    [`/zones/${zoneId}/pagerules`, "Page Rules are"],
    [`/zones/${zoneId}/argo/tiered_caching`, "Argo tiered caching is"],
    ["/radar/http/summary/os", "Radar is"],
  ] as const) {
    const answer = await server.call("GET", path);
    expectFailure(answer, 404, 7010);
    expect(answer.body.errors[0]!.message).toBe(`${product} not part of this installation`);
  }
  const analytics = await server.call("POST", "/graphql", { query: "{ viewer { zones { zoneTag } } }" });
  expectFailure(analytics, 404, 7010);
  expect(analytics.body.errors[0]!.message).toMatch(
    /^GraphQL Analytics .* metrics .* access log .* audit log/,
  );
  const named = operations.filter(
    ({ path }) => absentProduct(path.replaceAll(/\{\w+\}/g, "x")) !== undefined,
  );
  expect(named.map(({ id }) => id)).toEqual([]);
});

it("reports a token for another purpose as unknown, regardless of its length", async () => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const jwt = `${part({ alg: "HS256" })}.${part({ manifest: "x".repeat(4000) })}.${part("signature")}`;
  expectFailure(await server.call("GET", "/user", undefined, { authorization: `Bearer ${jwt}` }), 401, 1000);
  expectFailure(await server.call("GET", "/user", undefined, { authorization: "Bearer a b" }), 400, 6003);
});

it("operations have one id and one path each", () => {
  expect(new Set(operations.map((operation) => operation.id)).size).toBe(operations.length);
  expect(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size).toBe(operations.length);
});

describe("two operations that match the same path", () => {
  /** A path with well-formed ids that both match; undefined if there is none. */
  function common(a: Operation, b: Operation): string | undefined {
    const [left, right] = [a.path.split("/"), b.path.split("/")];
    if (a.method !== b.method || left.length !== right.length) return undefined;
    const segments = left.map((segment, i) => {
      if (!isParameter(segment)) return isParameter(right[i]!) || segment === right[i] ? segment : undefined;
      return isParameter(right[i]!) ? unknownId : right[i]!;
    });
    return segments.includes(undefined) ? undefined : segments.join("/");
  }
  /** The operation with fixed text at the first segment that differs. */
  function moreSpecific(a: Operation, b: Operation): Operation {
    const [left, right] = [a.path.split("/"), b.path.split("/")];
    return isParameter(left.find((segment, i) => isParameter(segment) !== isParameter(right[i]!))!) ? b : a;
  }
  const pairs = operations.flatMap((a, i) =>
    operations.slice(i + 1).flatMap((b) => {
      const path = common(a, b);
      return path === undefined ? [] : [{ path, a, b }];
    }),
  );
  /** Returns the id of the operation for a path, independent of the order of declaration. */
  const appOf = (declared: readonly Operation[]) =>
    createApi({
      services: {
        zones: { find: () => ({}) },
        accounts: { find: () => ({}) },
        storage: { following: undefined },
        audit: {
          perform: async (_operation: never, _call: never, _before: never, handle: () => never) => handle(),
        },
      } as unknown as ApiOptions["services"],
      operations: declared.map(({ id, method, path }) => ({
        operation: declare({
          ...{ id, method, path, summary: "", access: { scope: "own" } },
          result: z.string(),
          handle: async () => id,
        }),
        services: {},
      })),
      idParameters: new Set(),
      logger: pino({ level: "silent" }),
      rateLimit: 0,
      rateWindowSeconds: 1,
      bodyBytesMax: 1,
    });

  it("lead to the more specific one", async () => {
    expect(pairs.length).toBeGreaterThan(10);
    for (const app of [appOf(operations), appOf(operations.toReversed())]) {
      for (const { path, a, b } of pairs) {
        const incoming = { socket: {}, headers: {}, complete: true };
        const request = new Request(`http://api${path}`, { method: a.method });
        const response = await app.fetch(request, { incoming });
        const { result } = JSON.parse(await response.text()) as { result: string };
        expect([path, result]).toEqual([path, moreSpecific(a, b).id]);
      }
    }
  });
});
