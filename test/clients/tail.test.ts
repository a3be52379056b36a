import { afterAll, beforeAll, expect, it } from "vitest";
import { NotFoundError, type Cloudflare } from "cloudflare";
import { operations } from "../../src/capabilities.ts";
import { tailOperations } from "../../src/workers/tail/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client creates tails and parses every response. test/tail tests the events. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  ({ account_id } = server.ready);
  const files = [new File(["export default { fetch() {} }"], "main.js", { type: "text/javascript+module" })];
  await client.workers.scripts.update("tailed", {
    account_id,
    metadata: { main_module: "main.js" },
    files,
  });
});
afterAll(() => server.close(1000));

it("creates, lists and deletes the tails of a script", async () => {
  const { tail } = client.workers.scripts;
  const made = await tail.create("tailed", { account_id });
  expect(made.url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/client\/v4\/tails\//);
  expect(Date.parse(made.expires_at)).toBeGreaterThan(Date.now() + 5 * 60 * 60 * 1000);
  // The client's type declares one tail, but the response has all of them.
  const all = (await tail.get("tailed", { account_id })) as unknown as object[];
  expect(all).toEqual([{ id: made.id, expires_at: made.expires_at }]);
  await tail.delete(made.id, { account_id, script_name: "tailed" });
  expect(await tail.get("tailed", { account_id })).toEqual([]);
  await expect(tail.create("nobody", { account_id })).rejects.toThrow(NotFoundError);
});

it("every operation with a method in the client has been called", () => {
  const ids = tailOperations.map(({ id }) => id).filter((id) => id.startsWith("script_tail"));
  expect(ids.filter((id) => !called.has(id))).toEqual([]);
});
