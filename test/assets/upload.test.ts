import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { uploadForm } from "../runtime/platform.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";

/** The steps of an asset upload over HTTP: session, uploads, completion token. */
let server: TestServer;
let account: string;
beforeAll(async () => {
  server = await startTestServer();
  account = server.ready.account_id;
});
afterAll(() => server.close(1000));

const hashOf = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("hex").slice(0, 32);
type Manifest = Record<string, { hash: string; size: number }>;
const manifestOf = (files: Record<string, string>): Manifest =>
  Object.fromEntries(
    Object.entries(files).map(([path, content]) => [
      path,
      { hash: hashOf(content), size: Buffer.byteLength(content) },
    ]),
  );
const begin = (manifest: Manifest, script = "site") =>
  server.call("POST", `/accounts/${account}/workers/scripts/${script}/assets-upload-session`, { manifest });

async function upload(
  jwt: string,
  files: readonly { hash: string; content: string | Uint8Array; type?: string }[],
  path = `/accounts/${account}/edge/assets/upload?base64=true`,
): Promise<{ status: number; body: { result: { jwt?: string } | null; errors: { code: number }[] } }> {
  const form = new FormData();
  for (const { hash, content, type } of files) {
    const base64 = Buffer.from(content).toString("base64");
    if (type === undefined) form.append(hash, base64);
    else form.append(hash, new File([base64], hash, { type }));
  }
  const response = await fetch(`${server.ready.api}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${jwt}` },
    body: form,
  });
  return { status: response.status, body: (await response.json()) as never };
}

describe("the three steps", () => {
  it("do not complete uploads for a later script of the same name", async () => {
    const path = `/accounts/${account}/workers/scripts/reborn`;
    const deploy = async (
      metadata: Record<string, unknown> = {},
    ): Promise<{ status: number; body: unknown }> => {
      const code = "export default { fetch: () => new Response() };";
      const answer = await fetch(`${server.ready.api}${path}`, {
        method: "PUT",
        headers: { authorization: `Bearer ${ownerToken}` },
        body: uploadForm({ code, metadata }),
      });
      return { status: answer.status, body: await answer.json() };
    };
    const begun = async (): Promise<string> => {
      const { body } = await begin({ "/a": { hash: hashOf("reborn"), size: 6 } }, "reborn");
      const { jwt } = body.result as { jwt: string };
      return (await upload(jwt, [{ hash: hashOf("reborn"), content: "reborn" }])).body.result?.jwt ?? jwt;
    };
    await deploy();
    const jwt = await begun();
    expect((await deploy({ assets: { jwt } })).status).toBe(200);
    await server.call("DELETE", path);
    await deploy();
    expect(await deploy({ assets: { jwt } })).toMatchObject({
      status: 400,
      body: { errors: [{ code: 10307 }] },
    });
    expect((await deploy({ assets: { jwt: await begun() } })).status).toBe(200);
  });

  it("requests missing files, and completes when all are stored", async () => {
    const files = { "/index.html": "<h1>one</h1>", "/a.txt": "a", "/copy.txt": "a" };
    const session = await begin(manifestOf(files));
    const { jwt, buckets } = session.body.result as { jwt: string; buckets: string[][] };
    expect(buckets.flat().toSorted()).toEqual([hashOf("<h1>one</h1>"), hashOf("a")].toSorted());
    expect(jwt.split(".")).toHaveLength(3);
    const claims = JSON.parse(Buffer.from(jwt.split(".")[1]!, "base64url").toString()) as { exp: number };
    expect(claims.exp).toBeGreaterThan(Date.now() / 1000);

    const first = await upload(jwt, [{ hash: hashOf("a"), content: "a", type: "text/plain" }]);
    expect([first.status, first.body.result]).toEqual([202, {}]);
    const second = await upload(jwt, [
      { hash: hashOf("<h1>one</h1>"), content: "<h1>one</h1>", type: "text/html" },
    ]);
    expect(second.status).toBe(201);
    const owner = { accountId: account, scriptName: "site" };
    const id = await server.services.assets.completeUpload(owner, second.body.result!.jwt!);
    expect((await server.services.assets.load(id))!.entries.map(({ path }) => path)).toEqual(
      Object.keys(files),
    );

    const again = await begin(manifestOf({ ...files, "/b.txt": "b" }));
    expect((again.body.result as { buckets: string[][] }).buckets).toEqual([[hashOf("b")]]);
  });

  it("completes at once if all files are stored, also for another script of the account", async () => {
    const { body } = await begin(manifestOf({ "/x.txt": "a" }), "other");
    const { jwt, buckets } = body.result as { jwt: string; buckets: string[][] };
    expect(buckets).toEqual([]);
    const { assets } = server.services;
    await expect(assets.completeUpload({ accountId: account, scriptName: "other" }, jwt)).resolves.toBeTypeOf(
      "string",
    );
    await expect(
      assets.completeUpload({ accountId: account, scriptName: "site" }, jwt),
    ).rejects.toMatchObject({
      kind: "assets.completion",
    });
  });

  it("customers of a namespace share files by hash, and do not where their hashes are salted", async () => {
    const namespaces = `/accounts/${account}/workers/dispatch/namespaces`;
    await server.call("POST", namespaces, { name: "shared" });
    const asked = async (customer: string, hash: string): Promise<string[][]> => {
      const path = `${namespaces}/shared/scripts/${customer}/assets-upload-session`;
      const { body } = await server.call("POST", path, { manifest: { "/a.txt": { hash, size: 1 } } });
      const { jwt, buckets } = body.result as { jwt: string; buckets: string[][] };
      if (buckets.length > 0) await upload(jwt, [{ hash, content: "a", type: "text/plain" }]);
      return buckets;
    };
    // Files of the account are not files of the namespace.
    expect(await asked("first", hashOf("a"))).toEqual([[hashOf("a")]]);
    expect(await asked("second", hashOf("a"))).toEqual([]);
    for (const customer of ["first", "second"]) {
      const salted = hashOf(`${customer}a`);
      expect(await asked(customer, salted)).toEqual([[salted]]);
    }
  });

  it("takes a file as it is", async () => {
    const { body } = await begin(manifestOf({ "/raw.css": "body{}" }), "raw");
    const { jwt } = body.result as { jwt: string };
    const response = await fetch(
      `${server.ready.api}/accounts/${account}/workers/assets/upload/${hashOf("body{}")}`,
      {
        method: "POST",
        headers: { authorization: `Bearer ${jwt}`, "content-type": "text/css" },
        body: "body{}",
      },
    );
    expect(response.status).toBe(201);
  });

  it("completes when concurrent requests have sent all files", async () => {
    const files = Object.fromEntries(Array.from({ length: 700 }, (_, i) => [`/f/${i}.txt`, `file ${i}`]));
    const { body } = await begin(manifestOf(files), "many");
    const { jwt, buckets } = body.result as { jwt: string; buckets: string[][] };
    expect(buckets.map((bucket) => bucket.length)).toEqual([500, 200]);
    const byHash = new Map(Object.values(files).map((content) => [hashOf(content), content]));
    const answers = await Promise.all(
      buckets.map((bucket) =>
        upload(
          jwt,
          bucket.map((hash) => ({ hash, content: byHash.get(hash)!, type: "text/plain" })),
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toContain(201);
  });
});

describe("refuses", () => {
  it.each([
    ["a hash that is not 32 hex characters", { "/a": { hash: "A".repeat(32), size: 1 } }],
    ["a short hash", { "/a": { hash: "ab", size: 1 } }],
    ["a path without a slash", { a: { hash: "0".repeat(32), size: 1 } }],
    ["a file over the limit", { "/a": { hash: "0".repeat(32), size: 26 * 1024 * 1024 } }],
    [
      "two sizes for one hash",
      { "/a": { hash: "0".repeat(32), size: 1 }, "/b": { hash: "0".repeat(32), size: 2 } },
    ],
  ])("%s", async (_, manifest) => {
    const answer = await begin(manifest);
    expect([answer.status, answer.body.errors[0]!.code]).toEqual([400, 9207]);
    expect(answer.body.errors[0]!.source!.pointer).toMatch(/^\/body\/manifest/);
  });

  it("files that are not in the manifest, have another size, or are not base64; and stores nothing of them", async () => {
    const wanted = hashOf("wanted");
    const { body } = await begin(manifestOf({ "/w": "wanted" }), "strict");
    const { jwt } = body.result as { jwt: string };
    const codes = [];
    for (const file of [
      { hash: hashOf("else"), content: "else", type: "text/plain" },
      { hash: wanted, content: "wanted!", type: "text/plain" },
      { hash: wanted, content: "wanted".repeat(10_000), type: "text/plain" },
    ])
      codes.push((await upload(jwt, [file])).body.errors[0]!.code);
    expect(codes).toEqual([10303, 10304, 10304]);
    const form = new FormData();
    form.append(wanted, "%%%%");
    const bad = await fetch(`${server.ready.api}/accounts/${account}/edge/assets/upload?base64=true`, {
      method: "POST",
      headers: { authorization: `Bearer ${jwt}` },
      body: form,
    });
    expect(((await bad.json()) as { errors: { code: number }[] }).errors[0]!.code).toBe(10305);
    const again = await begin(manifestOf({ "/w": "wanted" }), "strict");
    expect((again.body.result as { buckets: string[][] }).buckets).toEqual([[wanted]]);
  });

  it("an API token for uploads, and a session's token for everything else", async () => {
    const { body } = await begin(manifestOf({ "/t": "token" }), "tokens");
    const { jwt } = body.result as { jwt: string };
    const file = { hash: hashOf("token"), content: "token", type: "text/plain" };
    expect((await upload(ownerToken, [file])).body.errors[0]!.code).toBe(1000);
    expect((await upload(`${jwt.slice(0, -4)}AAAA`, [file])).status).toBe(401);
    const other = `/accounts/${"0".repeat(32)}/edge/assets/upload?base64=true`;
    expect((await upload(jwt, [file], other)).status).toBe(404);
    for (const path of ["/user", `/accounts/${account}`, `/accounts/${account}/queues`]) {
      const refused = await server.call("GET", path, undefined, { authorization: `Bearer ${jwt}` });
      expect([refused.status, refused.body.errors[0]?.code]).toEqual([401, 1000]);
    }
    const done = await upload(jwt, [file]);
    await expect(
      server.services.assets.completeUpload({ accountId: account, scriptName: "tokens" }, jwt),
    ).rejects.toMatchObject({ kind: "assets.completion" });
    expect((await upload(done.body.result!.jwt!, [file])).status).toBe(401);
  });

  it("to change what is held under a hash", async () => {
    const hash = "1".repeat(32);
    const manifest = { "/o": { hash, size: 5 } };
    const first = (await begin(manifest, "opaque")).body.result as { jwt: string };
    const rival = (await begin(manifest, "rival")).body.result as { jwt: string };
    expect((await upload(first.jwt, [{ hash, content: "first", type: "text/plain" }])).status).toBe(201);
    const late = await upload(rival.jwt, [{ hash, content: "later", type: "text/html" }]);
    expect(late.status).toBe(201);
    const owner = { accountId: account, scriptName: "rival" };
    const id = await server.services.assets.completeUpload(owner, late.body.result!.jwt!);
    const file = (await server.services.assets.load(id))!.files.get(hash)!;
    expect(file.contentType).toBe("text/plain");
    const blob = await server.services.blobs.get(file.blobKey);
    expect(Buffer.concat(await blob!.stream.toArray()).toString()).toBe("first");
    const other = await begin({ "/o": { hash, size: 6 } }, "opaque");
    expect(other.body.errors[0]!.code).toBe(10304);
  });
});
