import { toFile, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { imageOperations } from "../../src/products/images/api.ts";
import { operations } from "../../src/capabilities.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { fourColors, jpegOf } from "../images/fixtures.ts";

/** For parameters that the API accepts but the client's types omit. */
type Loose = never;

/** The official client manages images and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;
let jpeg: Buffer;

beforeAll(async () => {
  server = await startTestServer({ privateNetworks: "all" });
  ({ client, called } = recordingClient(server, operations));
  account_id = server.ready.account_id;
  jpeg = await jpegOf(fourColors(64, 48));
});
afterAll(() => server.close(1000));

it("uploads files, buffers and addresses, with metadata in its own notation", async () => {
  const made = await client.images.v1.create({
    account_id,
    file: await toFile(jpeg, "a.jpg"),
    metadata: { k: "v", deep: { er: "x" } },
    requireSignedURLs: false,
    id: "own/name",
    creator: "someone",
  });
  expect(made).toMatchObject({
    id: "own/name",
    filename: "a.jpg",
    meta: { k: "v", deep: { er: "x" } },
    requireSignedURLs: false,
    creator: "someone",
  });
  expect((await fetch(made.variants![0]!)).status).toBe(200);
  const copied = await client.images.v1.create({ account_id, url: made.variants![0]! });
  expect(copied.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(await client.images.v1.get("own/name", { account_id })).toEqual(made);
  const edited = await client.images.v1.edit("own/name", { account_id, metadata: { z: 1 } });
  expect(edited).toMatchObject({ id: "own/name", meta: { z: 1 } });
  const blob = await client.images.v1.blobs.get("own/name", { account_id });
  expect(Buffer.from(await blob.arrayBuffer()).equals(jpeg)).toBe(true);
  expect(await client.images.v1.stats.get({ account_id })).toMatchObject({ count: { current: 2 } });
  await client.images.v1.delete(copied.id!, { account_id });
});

it("lists every image once, by pages and by tokens", async () => {
  for (let i = 0; i < 5; i++)
    await client.images.v1.create({
      account_id,
      file: await toFile(jpeg, `${i}.jpg`),
      metadata: { status: i % 2 === 0 ? "even" : "odd" },
    });
  const ids: string[] = [];
  for await (const page of client.images.v1.list({ account_id, per_page: 2 }))
    for (const image of page.images ?? []) ids.push(image.id!);
  expect([ids.length, new Set(ids).size]).toEqual([6, 6]);

  const seen: string[] = [];
  let token: string | null | undefined;
  do {
    const listed = await client.images.v2.list({
      account_id,
      per_page: 2,
      sort_order: "desc",
      ...(token == null ? {} : { continuation_token: token }),
    });
    seen.push(...listed.images!.map((image) => image.id!));
    token = listed.continuation_token;
  } while (token != null);
  expect(seen).toEqual(ids);
  const even = await client.images.v2.list({ account_id, "meta.status[eq:string]": "even" } as Loose);
  expect(even.images).toHaveLength(3);
});

it("creates upload URLs", async () => {
  const made = await client.images.v2.directUploads.create({
    account_id,
    requireSignedURLs: true,
    metadata: { a: 1 },
    expiry: new Date(Date.now() + 600_000).toISOString(),
  });
  const form = new FormData();
  form.set("file", new File([new Uint8Array(jpeg)], "direct.jpg"));
  expect((await fetch(made.uploadURL!, { method: "POST", body: form })).status).toBe(200);
  expect(await client.images.v1.get(made.id!, { account_id })).toMatchObject({
    filename: "direct.jpg",
    meta: { a: "1" },
    requireSignedURLs: true,
  });
});

it("manages variants and keys", async () => {
  const { variants, keys } = client.images.v1;
  const options = { fit: "cover" as const, width: 20, height: 10, metadata: "none" as const };
  expect(
    await variants.create({ account_id, id: "hero", options, neverRequireSignedURLs: true }),
  ).toMatchObject({
    variant: { id: "hero", options, neverRequireSignedURLs: true },
  });
  expect(await variants.get("hero", { account_id })).toMatchObject({ variant: { id: "hero" } });
  const edited = await variants.edit("hero", { account_id, options: { ...options, width: 30 } });
  expect(edited).toMatchObject({ variant: { options: { width: 30 } } });
  expect(Object.keys((await variants.list({ account_id })).variants!)).toEqual(["public", "hero"]);
  await variants.delete("hero", { account_id });
  expect(await keys.list({ account_id })).toMatchObject({ keys: [{ name: "default" }] });
  expect((await keys.update("other", { account_id })).keys).toHaveLength(2);
  expect((await keys.delete("default", { account_id })).keys).toMatchObject([{ name: "other" }]);
});

it("parses errors", async () => {
  const refused = client.images.v1.create({
    account_id,
    file: await toFile(Buffer.from("<html>"), "a.jpg"),
  });
  await expect(refused).rejects.toMatchObject({ status: 400, errors: [{ code: 5400 }] });
  await expect(client.images.v1.get("nothing", { account_id })).rejects.toMatchObject({ status: 404 });
});

it("calls every operation for which it has a method", () => {
  const withoutMethod = new Set(["image_config_get", "image_config_edit", "image_direct_upload_v1"]);
  const missing = imageOperations
    .map(({ id }) => id)
    .filter((id) => !called.has(id) && !withoutMethod.has(id));
  expect(missing).toEqual([]);
});
