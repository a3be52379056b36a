import { get } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { operations } from "../src/capabilities.ts";
import { ownerToken, startTestServer, type TestServer } from "./helpers/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  for (let zone = 0; zone < 5; zone++) await server.newZone(`zone-${zone}.example`);
});
afterAll(() => server.close(0));

interface Received {
  coding: string | undefined;
  vary: string | undefined;
  bytes: Buffer;
}

/** A call whose answer is not decoded, as fetch would do. */
const receive = (path: string, acceptEncoding?: string): Promise<Received> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${ownerToken}`,
      ...(acceptEncoding === undefined ? {} : { "accept-encoding": acceptEncoding }),
    };
    get(`${server.ready.api}${path}`, { headers, agent: false }, (response) => {
      const { "content-encoding": coding, vary } = response.headers;
      buffer(response).then((bytes) => resolve({ coding, vary, bytes }), reject);
    }).on("error", reject);
  });

const decoders = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync } as const;

it.each(Object.entries(decoders))("compresses a list with %s", async (name, decode) => {
  const plain = await receive("/zones?per_page=50");
  const { coding, vary, bytes } = await receive("/zones?per_page=50", name);
  expect({ coding, vary }).toEqual({ coding: name, vary: "accept-encoding" });
  expect(plain).toMatchObject({ coding: undefined, vary: "accept-encoding" });
  expect(bytes.length).toBeLessThan(plain.bytes.length / 2);
  expect(JSON.parse(decode(bytes).toString())).toEqual(JSON.parse(plain.bytes.toString()));
});

it("leaves short answers, and those with secrets, as they are", async () => {
  const account = `/accounts/${server.ready.account_id}`;
  expect(await receive("/zones?name=nothing.example", "gzip")).toMatchObject({ coding: undefined });
  for (let key = 0; key < 12; key++) {
    const tsig = {
      name: `${"long-".repeat(10)}${key}.`,
      algo: "hmac-sha512.",
      secret: "c2VjcmV0".repeat(8),
    };
    await server.call("POST", `${account}/secondary_dns/tsigs`, tsig);
  }
  const { coding, vary, bytes } = await receive(`${account}/secondary_dns/tsigs`, "gzip");
  expect(bytes.length).toBeGreaterThan(1024);
  expect({ coding, vary }).toEqual({ coding: undefined, vary: undefined });
});

/** Names of secrets in results. */
const secretName = /^(secret|private_?key|password|jwt|tokens?)$/;

it("the operations that read secrets say so", () => {
  const reading = operations.filter(({ method, result }) => method === "GET" && result !== undefined);
  const withSecrets = reading.filter(({ result }) => {
    const schema = z.toJSONSchema(result!, { io: "input", unrepresentable: "any", reused: "inline" });
    const names = [...JSON.stringify(schema).matchAll(/"(\w+)":\{/g)].map(([, name]) => name!);
    return names.some((name) => secretName.test(name));
  });
  const marked = operations.filter(({ answersSecret }) => answersSecret === true).map(({ id }) => id);
  for (const { id } of withSecrets) expect(marked, id).toContain(id);
  expect(marked.toSorted()).toEqual([
    "image_key_list",
    "script_preview",
    "zone_transfer_tsig_get",
    "zone_transfer_tsig_list",
  ]);
});
