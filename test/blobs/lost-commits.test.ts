import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { losingProxy, type LosingProxy } from "../helpers/lost-answers.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { callerOf, type Answered, type Call } from "../helpers/writes.ts";
import { fourColors, pngOf } from "../images/fixtures.ts";

/** The database commits a write that names new bytes, and the platform does not learn of it. The bytes stay. */
let postgres: TestPostgres;
let proxy: LosingProxy;
let server: TestServer;
let call: Call;
let base: string;
beforeAll(async () => {
  postgres = await startPostgres();
  proxy = await losingProxy(await postgres.createDatabase());
  server = await startTestServer({ databaseUrl: proxy.databaseUrl, logLevel: "silent" });
  call = callerOf(server.ready.api);
  base = `/accounts/${server.ready.account_id}`;
});
afterAll(async () => {
  await server.close(1000);
  proxy.close();
  await postgres.stop();
});

/** Calls while the commit of the statement has no answer. */
async function losing(statement: string, send: () => Promise<Answered>): Promise<void> {
  const loss = proxy.loseCommitOf(statement);
  const { status, headers } = await send();
  expect([status, headers.get("retry-after"), loss.isLost]).toEqual([503, "5", true]);
}

it("a large value keeps its bytes", async () => {
  const { id } = (await call("POST", `${base}/storage/kv/namespaces`, { title: "lost" })).result as {
    id: string;
  };
  const path = `${base}/storage/kv/namespaces/${id}/values/large`;
  const value = randomBytes(100_000).toString("hex");
  await losing('insert into "kv_entries"', () => call("PUT", path, value));
  const { status, text } = await call("GET", path);
  expect([status, text === value]).toEqual([200, true]);
});

it("an image keeps its bytes", async () => {
  const form = new FormData();
  form.set("id", "lost");
  form.set("file", new File([new Uint8Array(await pngOf(fourColors(8, 8)))], "a.png"));
  await losing('insert into "images"', () => call("POST", `${base}/images/v1`, form));
  expect((await call("GET", `${base}/images/v1/lost/blob`)).status).toBe(200);
});

it("an asset keeps its bytes", async () => {
  const content = randomBytes(1000);
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
  const open = async (): Promise<{ jwt: string; buckets: string[][] }> =>
    (
      await call("POST", `${base}/workers/scripts/lost/assets-upload-session`, {
        manifest: { "/a": { hash, size: content.length } },
      })
    ).result as { jwt: string; buckets: string[][] };
  const { jwt, buckets } = await open();
  expect(buckets).toEqual([[hash]]);
  const authorization = `Bearer ${jwt}`;
  await losing('insert into "asset_files"', () =>
    call("POST", `${base}/workers/assets/upload/${hash}`, content, { authorization }),
  );
  // A session asks for what the platform cannot read.
  expect((await open()).buckets).toEqual([]);
});
