import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** The three steps of static assets with curl only, for a script of the account and for a customer's. */
const isMissing = spawnSync("curl", ["--version"]).error !== undefined && process.env["CI_TOOLS"] !== "1";
let server: Hosting;
let folder: string;
const content = "<h1>sent by curl</h1>\n";
const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);

beforeAll(async () => {
  if (isMissing) return;
  server = await startHosting();
  folder = mkdtempSync(join(tmpdir(), "selvedge-curl-"));
  writeFileSync(join(folder, "index.html"), content);
  writeFileSync(join(folder, "index.b64"), execFileSync("base64", [join(folder, "index.html")]));
  writeFileSync(
    join(folder, "worker.mjs"),
    `export default { fetch: (request, env) => env.ASSETS.fetch(request) };`,
  );
  await server.call("POST", `/accounts/${server.account}/edge/dispatch/namespaces`, { name: "customers" });
  await server.deploy("dispatcher", {
    code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }],
  });
});
afterAll(() => server?.close(1000));

async function curl<T>(token: string, path: string, ...args: string[]): Promise<T> {
  const url = `${server.ready.api}/accounts/${server.account}${path}`;
  const child = spawn(
    "curl",
    ["-sS", "--fail-with-body", url, "-H", `Authorization: Bearer ${token}`, ...args],
    {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code, output).toBe(0);
  return (JSON.parse(output) as { result: T }).result;
}

it.skipIf(isMissing).each([
  ["a script of the account", "/workers/scripts/site", "site"],
  ["a customer's script", "/edge/dispatch/namespaces/customers/scripts/customer", "dispatcher"],
])("%s", async (_what, script, visited) => {
  const manifest = { "/index.html": { hash, size: content.length } };
  const session = await curl<{ jwt: string; buckets: string[][] }>(
    ownerToken,
    `${script}/assets-upload-session`,
    ...["-H", "Content-Type: application/json", "-d", JSON.stringify({ manifest })],
  );
  expect(session.buckets).toEqual([[hash]]);
  const { jwt } = await curl<{ jwt: string }>(
    session.jwt,
    "/edge/assets/upload?base64=true",
    ...["-X", "POST", "-F", `${hash}=@index.b64;type=text/html`],
  );
  const metadata = {
    main_module: "worker.mjs",
    compatibility_date: "2026-01-01",
    assets: { jwt },
    bindings: [{ type: "assets", name: "ASSETS" }],
  };
  await curl(
    ownerToken,
    script,
    ...["-X", "PUT", "-F", `metadata=${JSON.stringify(metadata)};type=application/json`],
    ...["-F", "worker.mjs=@worker.mjs;type=application/javascript+module"],
  );
  const { status, headers, body } = await server.ask(visited);
  expect([status, headers["content-type"], body]).toEqual([200, "text/html; charset=utf-8", content]);
});
