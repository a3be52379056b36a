import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import type { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { fieldNames } from "../../src/platform/access-log/declaration.ts";
import { ownerToken, type ApiResponse } from "../helpers/server.ts";
import { fourColors, jpegOf } from "./fixtures.ts";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** From the creation of an upload URL to the image, for clients without a token. */
let platform: ImagePlatform;
let jpeg: Buffer;

beforeAll(async () => {
  platform = await startImagePlatform();
  jpeg = await jpegOf(fourColors(64, 48));
});
afterAll(() => platform.close(1000));
afterEach(() => vi.useRealTimers());

interface Created {
  id: string;
  uploadURL: string;
}
async function create(body: unknown = {}): Promise<Created> {
  const answer = await platform.api("POST", "/v2/direct_upload", body);
  expect(answer.status).toBe(200);
  return answer.body.result as Created;
}
function post(url: string, bytes: Uint8Array = jpeg, name = "mine.jpg"): Promise<Response> {
  const form = new FormData();
  form.set("file", new File([bytes as Uint8Array<ArrayBuffer>], name));
  return fetch(url, { method: "POST", body: form });
}
const codeOf = async (response: Response): Promise<[number, number | undefined]> => [
  response.status,
  ((await response.json()) as ApiResponse["body"]).errors[0]?.code,
];

it("goes from a draft to an image, once", async () => {
  const { id, uploadURL } = await create({ requireSignedURLs: true, metadata: { a: 1 }, creator: "c" });
  expect(uploadURL).toMatch(/\/upload\/[\w-]{32}$/);
  const draft = (await platform.api("GET", `/v1/${id}`)).body.result;
  expect(draft).toMatchObject({ id, draft: true, requireSignedURLs: true, meta: { a: 1 }, creator: "c" });
  expect((await platform.api("GET", "/v1")).body.result.images).toEqual([]);
  expect((await platform.deliver(id, "w=10")).status).toBe(404);

  const answer = await post(uploadURL);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  const { result, success } = (await answer.json()) as ApiResponse["body"];
  expect(success).toBe(true);
  expect(result).toMatchObject({ id, filename: "mine.jpg", requireSignedURLs: true, meta: { a: 1 } });
  expect(result).not.toHaveProperty("draft");
  expect((await platform.api("GET", `/v1/${id}`)).body.result).toEqual(result);
  expect((await platform.api("GET", "/v1")).body.result.images).toEqual([result]);

  expect(await codeOf(await post(uploadURL))).toEqual([409, 5409]);
});

it("is created from JSON, a form with brackets, an urlencoded body, or an empty body", async () => {
  const url = `${platform.ready.api}/accounts/${platform.ready.account_id}/images/v2/direct_upload`;
  const headers = { authorization: `Bearer ${ownerToken}` };
  const form = new FormData();
  form.set("requireSignedURLs", "true");
  form.set("metadata[a]", "1");
  form.set("metadata[n][b]", "x");
  const bodies: [FormData | URLSearchParams | string | null, object][] = [
    [form, { requireSignedURLs: true, meta: { a: "1", n: { b: "x" } } }],
    [new URLSearchParams({ requireSignedURLs: "true" }), { requireSignedURLs: true }],
    [JSON.stringify({ requireSignedURLs: false, id: "my/own" }), { requireSignedURLs: false, id: "my/own" }],
    [null, { requireSignedURLs: false }],
  ];
  for (const [body, expected] of bodies) {
    const response = await fetch(url, { method: "POST", headers, body });
    expect(response.status).toBe(200);
    const { id } = ((await response.json()) as { result: Created }).result;
    expect((await platform.api("GET", `/v1/${encodeURIComponent(id)}`)).body.result).toMatchObject(expected);
  }
});

it("accepts posts from browsers of any site", async () => {
  const { uploadURL } = await create();
  const preflight = await fetch(uploadURL, {
    method: "OPTIONS",
    headers: { origin: "https://example.com", "access-control-request-method": "POST" },
  });
  expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
});

it("expires after 2 minutes to 6 hours, by default after 30 minutes", async () => {
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  for (const expiry of [inMinutes(1), inMinutes(7 * 60), "tomorrow"]) {
    const { status, body } = await platform.api("POST", "/v2/direct_upload", { expiry });
    expect([status, body.errors[0]!.code]).toEqual([400, 5400]);
  }
  const [soon, usual] = [await create({ expiry: inMinutes(3) }), await create()];
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 4 * 60_000 });
  expect(await codeOf(await post(soon.uploadURL))).toEqual([404, 5404]);
  expect((await platform.api("GET", `/v1/${soon.id}`)).status).toBe(404);
  await platform.services.images.uploads.sweep();
  expect((await platform.api("GET", `/v1/${usual.id}`)).status).toBe(200);
  expect((await post(usual.uploadURL)).status).toBe(200);
});

it("keeps the draft when the upload is not an image, or is aborted", async () => {
  const { id, uploadURL } = await create();
  expect(await codeOf(await post(uploadURL, Buffer.from("<html>")))).toEqual([400, 5400]);
  const big = Buffer.concat([Buffer.from("<html>"), Buffer.alloc(30_000_000)]);
  expect(await codeOf(await post(uploadURL, big))).toEqual([400, 5400]);
  const broken = httpRequest(uploadURL, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=x", "content-length": 1_000_000 },
  });
  broken.on("error", () => {});
  broken.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n');
  broken.write(Buffer.concat([jpeg, Buffer.alloc(200_000)]));
  const incoming = () => readdirSync((platform.services.blobs as FileBlobs).path("incoming"));
  await expect.poll(() => incoming().length).toBe(1);
  broken.destroy();
  await expect.poll(incoming).toEqual([]);
  expect((await platform.api("GET", `/v1/${id}`)).body.result.draft).toBe(true);
  expect((await post(uploadURL)).status).toBe(200);
});

it("of two concurrent posts, one wins", async () => {
  const { id, uploadURL } = await create();
  const statuses = (await Promise.all([post(uploadURL), post(uploadURL), post(uploadURL)])).map(
    ({ status }) => status,
  );
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
  expect((await platform.api("GET", `/v1/${id}`)).status).toBe(200);
});

it("accepts only its own tokens and methods", async () => {
  const url = `${platform.ready.delivery}/upload/${"a".repeat(32)}`;
  expect(await codeOf(await post(url))).toEqual([404, 5404]);
  const { uploadURL } = await create();
  expect((await fetch(uploadURL)).status).toBe(404);
  expect(await codeOf(await fetch(uploadURL, { method: "POST", body: "x" }))).toEqual([400, 5415]);
});

it("returns errors in the envelope, also to a client that is still sending", async () => {
  const { uploadURL } = await create();
  expect((await post(uploadURL)).status).toBe(200);
  const unknown = uploadURL.replace(/[^/]+$/, "x".repeat(32));
  const large = new Uint8Array(3_000_000);
  const cases = [
    [uploadURL, 409, 5409],
    [unknown, 404, 5404],
    [(await create()).uploadURL, 400, 5400], // zeros are not an image
  ] as const;
  for (const [url, status, code] of cases) {
    // The faster side differs between attempts.
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(url, large)));
    for (const answer of answers) {
      const { success, errors } = (await answer.json()) as ApiResponse["body"];
      expect([answer.status, success, errors[0]!.code]).toEqual([status, false, code]);
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    }
  }
});

it("ignores the other fields of a form, as a browser's form has them", async () => {
  const { uploadURL } = await create({ metadata: { a: 1 } });
  const form = new FormData();
  form.set("csrf", "x");
  form.set("metadata", "{");
  form.set("file", new File([new Uint8Array(jpeg)], "mine.jpg"));
  form.append("file-size", "1");
  const answer = await fetch(uploadURL, { method: "POST", body: form });
  expect([answer.status, ((await answer.json()) as ApiResponse["body"]).result.meta]).toEqual([
    200,
    { a: 1 },
  ]);
});

it("takes metadata in the Go client's notation", async () => {
  const { status, body } = await platform.upload(jpeg, { "metadata.a": "1", "metadata.n.b": "x" });
  expect([status, body.result.meta]).toEqual([200, { a: "1", n: { b: "x" } }]);
  for (const name of ["metadata.", "metadata.a..b", "metadata.__proto__", "metadata.a.b.c.d.e.f"])
    expect([name, (await platform.upload(jpeg, { [name]: "1" })).status]).toEqual([name, 400]);
});

it("leaves no token in a log, although a refused upload can be repeated with it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-uploads-"));
  const file = join(folder, "access.log");
  const logged = await startImagePlatform({ accessLog: file, accessLogFields: fieldNames });
  try {
    const { uploadURL } = (await logged.api("POST", "/v2/direct_upload", {})).body.result as Created;
    const token = uploadURL.slice(-32);
    expect((await fetch(uploadURL, { method: "OPTIONS" })).status).toBe(204);
    expect(await codeOf(await post(uploadURL, Buffer.from("no picture")))).toEqual([400, 5400]);
    // The path and the URI of both requests.
    const hidden = async (): Promise<unknown[]> => {
      await Promise.all(logged.services.accessLogWriters.map((writer) => writer.flush()));
      return readFileSync(file, "utf8").match(/\/upload\/REDACTED\b/g) ?? [];
    };
    await expect.poll(hidden).toHaveLength(4);
    expect(readFileSync(file, "utf8")).not.toContain(token);
    expect((await post(uploadURL)).status).toBe(200);
  } finally {
    await logged.close(1000);
    rmSync(folder, { recursive: true });
  }
});
