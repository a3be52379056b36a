import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Operation } from "../src/api/operation.ts";
import { operations } from "../src/operations.ts";
import { permissionGroups } from "../src/tokens/permissions.ts";
import { startTestServer, type Answer, type TestServer } from "./helpers/server.ts";

/** Walks every operation with credentials and input that must be refused. A new operation is in it by being declared. */
let server: TestServer;
let zoneId: string;
let narrowToken: string;
let strangerToken: string;

beforeAll(async () => {
  server = await startTestServer();
  zoneId = ((await server.call("POST", "/zones", { name: "contract.example" })).body.result as { id: string })
    .id;
  narrowToken = await createToken(
    { [`com.cloudflare.api.account.${"0".repeat(32)}`]: "*" },
    "Account Settings Read",
  );
  const other = (await server.call("POST", "/accounts", { name: "Other" })).body.result as { id: string };
  strangerToken = await createAccountToken(other.id);
});
afterAll(() => server.close(1000));

async function createToken(resources: object, group: string): Promise<string> {
  const body = {
    name: "narrow",
    policies: [{ effect: "allow", resources, permission_groups: [{ name: group }] }],
  };
  return ((await server.call("POST", "/user/tokens", body)).body.result as { value: string }).value;
}

/** All permissions of another account: none of them reach the first. */
async function createAccountToken(accountId: string): Promise<string> {
  const groups = permissionGroups.filter((group) => group.scope !== "user").map(({ id }) => ({ id }));
  const resources = { [`com.cloudflare.api.account.${accountId}`]: "*" };
  const body = { name: "stranger", policies: [{ effect: "allow", resources, permission_groups: groups }] };
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
const someBody = (operation: Operation): unknown =>
  operation.body === undefined || operation.bodyKind !== "json" ? undefined : {};

function expectFailure(answer: Answer, status: number, code?: number): void {
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
  ): Promise<Answer> =>
    server.call(operation.method, pathOf(operation, ids), body, {
      authorization: token === undefined ? "" : `Bearer ${token}`,
    });

  it("refuses a call without credentials", async () => {
    const response = await fetch(`${server.ready.api}${pathOf(operation)}`, { method: operation.method });
    expect(response.status).toBe(401);
    expect(((await response.json()) as Answer["body"]).errors[0]!.code).toBe(9106);
  });

  it("refuses an unknown token", async () => {
    expectFailure(await call("not-a-token-that-anyone-has"), 401, 1000);
  });

  if (operation.access.scope !== "caller" && operation.access.scope !== "own") {
    it("refuses a token without the permission", async () => {
      expectFailure(await call(narrowToken), 403, 9109);
    });

    it("refuses the token of another account", async () => {
      expectFailure(await call(strangerToken), 403, 9109);
    });
  }

  const lastParameter = operation.path.match(/\{(\w+)\}(?!.*\{)/)?.[1];
  if (lastParameter !== undefined && lastParameter !== "phase") {
    it("answers 404 to an unknown id", async () => {
      if (operation.access.scope === "caller" || operation.access.scope === "own") return;
      if (operation.method === "PUT" && operation.body === undefined) return; // makes what is not there
      // Where a body is needed it is checked first: an id that does not exist is then no news.
      const answer = await server.call(
        operation.method,
        pathOf(operation, { [lastParameter]: unknownId }),
        someBody(operation),
      );
      expect(answer.body.success).toBe(false);
      if (operation.body === undefined || operation.bodyOptional) expect(answer.status).toBe(404);
      else expect([400, 404, 415]).toContain(answer.status);
    });

    it("answers 404 to a malformed id", async () => {
      // What is chosen by people is not malformed: it is only not there.
      if (
        ["rule_id", "image_id", "instance_id", "version_id", "event_type"].includes(lastParameter) ||
        lastParameter.endsWith("_name")
      )
        return;
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
    it("refuses a malformed body, a wrong type, an unknown field, a wrong content type and a body over the limit", async () => {
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
    it("refuses a body that is no form", async () => {
      expectFailure(await server.call(operation.method, pathOf(operation), {}), 415);
    });
  }

  if (operation.query?.shape["per_page"] !== undefined) {
    it("refuses a page that cannot be, naming the parameter", async () => {
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
      if (answer.status === 404) return;
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

it("operations have one id and one path each", () => {
  expect(new Set(operations.map((operation) => operation.id)).size).toBe(operations.length);
  expect(new Set(operations.map(({ method, path }) => `${method} ${path}`)).size).toBe(operations.length);
});
