import { rmSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/** Acknowledged scripts, assets, secrets and values exist after a SIGKILL. */
const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { SELVEDGE_API_TOKEN: ownerToken };

async function call(
  server: ServerProcess,
  method: string,
  path: string,
  body?: string | FormData,
  type?: string,
) {
  const response = await fetch(`${server.ready.api}/accounts/${server.ready.account_id}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ownerToken}`,
      ...(type === undefined ? {} : { "content-type": type }),
    },
    ...(body === undefined ? {} : { body }),
  });
  expect(response.status).toBeLessThan(300);
  return ((await response.json()) as { result: never }).result as Record<string, string>;
}

it("survives a kill", async () => {
  const first = await serve(["--data-dir", folder], environment);
  const json = "application/json";
  const { id } = await call(first, "POST", "/storage/kv/namespaces", '{"title":"kept"}', json);
  const large = "x".repeat(300_000);
  await call(first, "PUT", `/storage/kv/namespaces/${id}/values/small`, "small");
  await call(first, "PUT", `/storage/kv/namespaces/${id}/values/large`, large);
  const form = new FormData();
  const bindings = [
    { type: "kv_namespace", name: "KV", namespace_id: id },
    { type: "secret_text", name: "SECRET", text: "sealed" },
  ];
  form.append("metadata", JSON.stringify({ main_module: "m.mjs", bindings }));
  const code = `export default { async fetch(_, { KV, SECRET }) {
    return Response.json([await KV.get("small"), (await KV.get("large")).length, SECRET]);
  } };`;
  form.append("m.mjs", new File([code], "m.mjs", { type: "application/javascript+module" }));
  await call(first, "PUT", "/workers/scripts/kept", form);
  const { subdomain } = await call(first, "GET", "/workers/subdomain");
  first.process.kill("SIGKILL");
  await first.exited;

  const second = await serve(["--data-dir", folder], environment);
  const { body } = await requestEdge(second.ready.edge, `kept.${subdomain}.workers.localhost`);
  expect(JSON.parse(body)).toEqual(["small", large.length, "sealed"]);
  second.process.kill("SIGTERM");
  await second.exited;
});
