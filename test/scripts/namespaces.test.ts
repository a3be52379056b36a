import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, deploy, esm, upload } from "./harness.ts";

/** Effects of changes to a dispatch namespace on its customers' scripts. */
let server: TestServer;
let base: string;
beforeAll(async () => {
  server = await startTestServer();
  base = `/accounts/${server.ready.account_id}/edge/dispatch/namespaces`;
  await server.call("POST", base, { name: "before" });
  await upload(server, `${base}/before/scripts/tenant`, [
    { name: "metadata", content: '{"main_module":"m.mjs","compatibility_date":"2026-01-01"}' },
    {
      name: "m.mjs",
      filename: "m.mjs",
      content: "export default { fetch: (request) => new Response(String(request.cf?.httpProtocol)) };",
      type: esm,
    },
  ]);
});
afterAll(() => server.close(1000));

const dispatchTo = async (namespace: string): Promise<void> =>
  deploy(
    server,
    "dispatcher",
    "export default { fetch: (request, env) => env.N.get('tenant').fetch(request) };",
    {
      bindings: [{ type: "dispatch_namespace", name: "N", namespace }],
    },
  );
const seen = async (): Promise<string> => (await ask(server, "dispatcher")).body;

it("trust shows request.cf, also after renaming, and can be revoked", async () => {
  await dispatchTo("before");
  expect(await seen()).toBe("undefined");
  await server.call("PATCH", `${base}/before`, { trusted_workers: true });
  expect(await seen()).toBe("HTTP/1.1");
  await server.call("PUT", `${base}/before`, { name: "after" });
  await dispatchTo("after");
  expect(await seen()).toBe("HTTP/1.1");
  await server.call("PATCH", `${base}/after`, { trusted_workers: false });
  expect(await seen()).toBe("undefined");
});

it("a dispatch to a deleted customer fails", async () => {
  await server.call("DELETE", `${base}/after`);
  expect((await ask(server, "dispatcher")).status).toBe(500);
});
