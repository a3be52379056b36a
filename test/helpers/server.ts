import assert from "node:assert/strict";
import Cloudflare from "cloudflare";
import type { Logger } from "pino";
import { loadConfig } from "../../src/platform/config/config.ts";
import type { SettingName } from "../../src/platform/config/settings.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";
import { startServer, type RunningServer } from "../../src/server.ts";
import { uncaughtCounts } from "../../src/platform/util/uncaught.ts";
import { readMessages } from "./messages.ts";
import { recordAnswer } from "./record-answers.ts";

export const ownerToken = "owner-token-for-tests";
export const ownerKey = "owner-key-for-tests";

export interface TestServer extends RunningServer {
  client: Cloudflare;
  /** A client with a token that has one group of permissions on the resources. */
  clientWith(group: string, resources: Record<string, string>, conditions?: object): Promise<Cloudflare>;
  /** Makes a zone of the owner's account, and answers with its id. */
  newZone(name: string): Promise<string>;
  /** Calls the API as the owner, or with the given headers; answers with the status and the envelope. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>;
}
export interface ApiResponse {
  status: number;
  headers: Headers;
  body: {
    success: boolean;
    // oxlint-disable-next-line typescript/no-explicit-any
    result: any;
    errors: { code: number; message: string; source?: { pointer: string } }[];
    messages: unknown[];
    result_info?: Record<string, number>;
  };
}

/** Every message that a test is answered with is read for holes. */
const readingFetch: typeof fetch = async (input, init) => readMessages(await fetch(input, init));

/** A whole platform in memory on free ports, which also checks everything that it answers against its contract. */
export async function startTestServer(
  settings: Partial<Record<SettingName, unknown>> = {},
  logger?: Logger,
): Promise<TestServer> {
  // A test that makes thousands of faults logs none: "silent" is no level of the setting.
  const { logLevel = "error", ...rest } = settings as { logLevel?: string };
  const { config } = loadConfig(
    {
      ephemeral: true,
      apiListen: "127.0.0.1:0",
      edgeListen: "127.0.0.1:0",
      dnsListen: "127.0.0.1:0",
      apiToken: ownerToken,
      apiKey: ownerKey,
      apiRateLimit: 0,
      ...rest,
    },
    {},
    undefined,
  );
  const server = await startServer(config, logger ?? createLogger(logLevel), {
    validateResults: true,
    ...(recordAnswer === undefined ? {} : { onResult: recordAnswer }),
  });
  const call: TestServer["call"] = async (method, path, body, headers = {}) => {
    const response = await readingFetch(`${server.ready.api}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ownerToken}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === "" ? {} : JSON.parse(text)) as ApiResponse["body"],
    };
  };
  const clientOf = (apiToken: string): Cloudflare =>
    new Cloudflare({ baseURL: server.ready.api, apiToken, maxRetries: 0, fetch: readingFetch });
  const client = clientOf(ownerToken);
  return {
    ...server,
    async close(deadlineMs) {
      await server.close(deadlineMs);
      assert.deepEqual(uncaughtCounts, { exception: 0, rejection: 0 });
    },
    client,
    call,
    async clientWith(group, resources, conditions = {}) {
      const policies = [{ effect: "allow", resources, permission_groups: [{ name: group }] }];
      const { body } = await call("POST", "/user/tokens", { name: group, policies, ...conditions });
      return clientOf((body.result as { value: string }).value);
    },
    async newZone(name) {
      const account = { id: server.ready.account_id };
      return (await client.zones.create({ account, name, type: "full" })).id;
    },
  };
}
