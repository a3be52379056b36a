import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { ownerToken } from "../helpers/server.ts";
import {
  animation,
  bitPng,
  fourColors,
  gifOfTwoSizes,
  hollowGif,
  jpegOf,
  jpegOfTwoSizes,
} from "./fixtures.ts";
import { raster, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** Accepted and refused images, with the error messages. */
let platform: ImagePlatform;
let jpeg: Buffer;

beforeAll(async () => {
  platform = await startImagePlatform();
  jpeg = await jpegOf(fourColors(64, 48));
});
afterAll(() => platform.close(1000));

const count = async (): Promise<number> => {
  const { body } = await platform.api("GET", "/v1/stats");
  return (body.result as { count: { current: number } }).count.current;
};

it("returns the same record as get and list", async () => {
  const { status, body } = await platform.upload(jpeg, { metadata: '{"a":{"b":1}}', creator: "someone" });
  expect(status).toBe(200);
  expect(body.result).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    filename: "picture.jpg",
    uploaded: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
    requireSignedURLs: false,
    variants: [`${platform.ready.delivery}/${platform.ready.account_hash}/${String(body.result.id)}/public`],
    meta: { a: { b: 1 } },
    creator: "someone",
  });
  const { id } = body.result as { id: string };
  expect((await platform.api("GET", `/v1/${id}`)).body.result).toEqual(body.result);
  expect((await platform.api("GET", "/v1")).body.result.images).toContainEqual(body.result);
  expect((await platform.api("GET", "/v2")).body.result.images).toContainEqual(body.result);
});

describe("invalid images are refused, and nothing of them is stored", () => {
  it.each<[what: string, bytes: () => Promise<Buffer> | Buffer, words: RegExp]>([
    ["an empty file", () => Buffer.alloc(0), /received an empty file/],
    ["a JPEG cut off inside its header", () => jpeg.subarray(0, 100), /a damaged JPEG/],
    ["HTML named .jpg", () => Buffer.from("<!doctype html><script>alert(1)</script>"), /received HTML/],
    ["SVG", () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>'), /SVG or XML/],
    [
      "XML with entities",
      () => Buffer.from('<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>'),
      /SVG or XML/,
    ],
    ["HEIC", () => Buffer.from("\0\0\0\x18ftypheic\0\0\0\0mif1heic", "latin1"), /HEIC/],
    ["AVIF", async () => sharp(jpeg).avif({ effort: 0 }).toBuffer(), /AVIF/],
    ["TIFF", async () => sharp(jpeg).tiff().toBuffer(), /TIFF/],
    ["BMP", () => Buffer.from("BM0000000000000000"), /BMP/],
    ["PDF", () => Buffer.from("%PDF-1.7\n%%EOF"), /PDF/],
    ["an icon", () => Buffer.from("\0\0\x01\0\x01\0\x10\x10", "latin1"), /an icon/],
    ["a video", () => Buffer.from("\0\0\0\x18ftypisom\0\0\0\0isomiso2", "latin1"), /a video/],
    ["a PNG without pixels", () => bitPng(10, 10, true).subarray(0, 33), /a damaged PNG/],
    [
      "a JPEG without a header",
      () => Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.alloc(2_000_000, 0xff)]),
      /too many parts/,
    ],
    ["a GIF without frames", () => hollowGif(5, 5, 0), /a damaged GIF/],
    ["a JPEG with two sizes", () => jpegOfTwoSizes(jpeg), /a marker is out of place/],
  ])("%s", async (_what, bytes, words) => {
    const before = await count();
    const { status, body } = await platform.upload(await bytes());
    expect([status, body.errors[0]!.code]).toEqual([400, 5400]);
    expect(body.errors[0]!.message).toMatch(words);
    expect(await count()).toBe(before);
  });

  it.each<[what: string, bytes: () => Buffer]>([
    ["a PNG bomb of 50,000 × 50,000", () => bitPng(50_000, 50_000, false)],
    ["a PNG that says 30,000 × 30,000 in 77 bytes", () => bitPng(30_000, 30_000, false)],
    ["a GIF on a canvas of 65,535 × 65,535", () => hollowGif(65_535, 65_535, 1)],
    ["a side of 12,001 pixels", () => bitPng(12_001, 1, true)],
    ["an animation of 101 megapixels", () => hollowGif(1000, 1000, 101)],
    ["an animation of 10,001 frames", () => hollowGif(1, 1, 10_001)],
  ])("%s is too large, by its header alone", async (_what, bytes) => {
    const { status, body } = await platform.upload(bytes());
    expect([status, body.errors[0]!.code]).toEqual([400, 5401]);
    expect(body.errors[0]!.message).toMatch(/^Too large: expected .* (pixels|frames)/);
    expect(platform.services.images.engine.pid).toBeUndefined();
  });
});

it("does not decode a picture that is larger than its header says", async () => {
  const large = sharp({ create: { width: 1200, height: 900, channels: 3, background: "#345" } });
  const id = await platform.store(gifOfTwoSizes(await large.gif().toBuffer()));
  const { status, bytes } = await platform.deliver(id, "w=100,f=png");
  expect([status, String(bytes)]).toEqual([422, expect.stringContaining("cannot be decoded")]);
});

it("detects the format by the bytes, not by the name", async () => {
  const { body } = await platform.upload(jpeg, {}, "holiday.png");
  const { id } = body.result as { id: string };
  const blob = await fetch(
    `${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1/${id}/blob`,
    {
      headers: { authorization: `Bearer ${ownerToken}` },
    },
  );
  expect(blob.headers.get("content-type")).toBe("image/jpeg");
  expect(blob.headers.get("content-disposition")).toBe('attachment; filename="holiday.png"');
  expect(blob.headers.get("x-content-type-options")).toBe("nosniff");
  expect(Buffer.from(await blob.arrayBuffer()).equals(jpeg)).toBe(true);
});

it.each<[what: string, bytes: () => Promise<Buffer>]>([
  [
    "a GIF that is a script",
    async () =>
      Buffer.concat([
        await animation("gif", { width: 8, height: 8, frames: 1 }),
        Buffer.from("*/=1;alert(1)//"),
      ]),
  ],
  [
    "a JPEG with a page behind it",
    async () => Buffer.concat([jpeg, Buffer.from("PK\x03\x04<script>alert(1)</script>")]),
  ],
])("%s is an image, and delivered without its tail", async (_what, bytes) => {
  const id = await platform.store(await bytes());
  const delivered = await platform.deliver(id, "w=100");
  expect(delivered.status).toBe(200);
  expect(delivered.bytes.includes("alert(1)")).toBe(false);
  expect(delivered.headers.get("x-content-type-options")).toBe("nosniff");
  expect(delivered.headers.get("content-security-policy")).toContain("default-src 'none'");
});

it("accepts a JPEG with truncated pixels; its transform returns 422, and its bytes are stored unchanged", async () => {
  const whole = await jpegOf(fourColors(400, 400));
  const cut = whole.subarray(0, Math.floor(whole.length * 0.6));
  const id = await platform.store(cut);
  const { status, headers, bytes } = await platform.deliver(id, "w=200,f=webp");
  expect([status, headers.get("cf-resized")]).toEqual([422, "err=9516"]);
  expect(bytes.toString()).toMatch(/^ERROR 5403: Invalid transform: the image cannot be decoded/);
  expect(headers.get("cache-control")).toBe("max-age=0");
  const envelope = await platform.deliver(id, "w=200,f=webp", { accept: "application/json" });
  expect(JSON.parse(envelope.bytes.toString())).toMatchObject({ success: false, errors: [{ code: 5403 }] });
  const { blobs } = platform.services;
  const { content } = await platform.services.images.stored.find(platform.ready.account_id, id);
  const stored: Buffer[] = [];
  for await (const chunk of (await blobs.get(content!.blobKey))!.stream) stored.push(chunk as Buffer);
  expect(createHash("sha256").update(Buffer.concat(stored)).digest("hex")).toBe(
    createHash("sha256").update(cut).digest("hex"),
  );
});

it("delivers 100 megapixels in one bit each", async () => {
  const id = await platform.store(bitPng(10_000, 10_000, true));
  const { status, bytes } = await platform.deliver(id, "w=100,f=png");
  expect(status).toBe(200);
  expect((await raster(bytes)).at(50, 50).slice(0, 1)).toEqual([0]);
});

describe("forms", () => {
  it.each<[what: string, fields: Record<string, string>, words: RegExp]>([
    ["metadata that is not JSON", { metadata: "{" }, /a JSON object for metadata/],
    ["metadata that is a list", { metadata: "[1]" }, /a JSON object for metadata/],
    ["too much metadata", { metadata: JSON.stringify({ a: "x".repeat(1020) }) }, /at most 1024 bytes/],
    ["an invalid flag", { requireSignedURLs: "yes" }, /true or false/],
    ["an unknown field", { colour: "red" }, /"colour"/],
    ["an id that looks generated", { id: "0e3b4c1e-2222-4333-8444-555566667777" }, /not a UUID/],
    ["an id that begins with a slash", { id: "/a" }, /no slash/],
    ["an id that is too long", { id: "a".repeat(1025) }, /1 to 1024 characters/],
    ["an id that has another meaning in the API", { id: "stats" }, /none of batch_token, config/],
    ["an id that URLs would normalize away", { id: "a/../b" }, /no part that is/],
    ["an id that is two dots", { id: ".." }, /no part that is/],
    ["a creator that databases refuse", { creator: "a\0" }, /no NUL/],
    ["both file and url", { url: "http://example.com/a.jpg" }, /either file or url/],
    ["metadata under a name that is not safe", { "metadata[__proto__][a]": "1" }, /metadata\[name\]/],
    ["metadata too deep", { "metadata[a][b][c][d][e][f]": "1" }, /at most 5 levels/],
  ])("refuses %s", async (_what, fields, words) => {
    const before = await count();
    const { status, body } = await platform.upload(jpeg, fields);
    expect([status, body.errors[0]!.code]).toEqual([400, 5400]);
    expect(body.errors[0]!.message).toMatch(words);
    expect(await count()).toBe(before);
  });

  it("reads metadata in brackets as the official clients send it", async () => {
    const { body } = await platform.upload(jpeg, {
      "metadata[a]": "1",
      "metadata[n][b]": "x",
      requireSignedURLs: "true",
    });
    expect(body.result).toMatchObject({ meta: { a: "1", n: { b: "x" } }, requireSignedURLs: true });
  });

  it("refuses raw bytes, an empty form, and a second file", async () => {
    const raw = await fetch(`${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}`, "content-type": "image/jpeg" },
      body: new Uint8Array(jpeg),
    });
    expect([raw.status, ((await raw.json()) as { errors: { code: number }[] }).errors[0]!.code]).toEqual([
      400, 5415,
    ]);
    const empty = await postForm(new FormData());
    expect([empty.status, empty.code]).toEqual([400, 5400]);
    const twice = new FormData();
    twice.append("file", new File([new Uint8Array(jpeg)], "a.jpg"));
    twice.append("file", new File([new Uint8Array(jpeg)], "b.jpg"));
    expect((await postForm(twice)).code).toBe(5400);
  });

  it("names reserved paths that are not available in place of an id", async () => {
    const { status, body } = await platform.api("GET", "/v1/batch_token");
    expect([status, body.errors[0]!.code]).toEqual([404, 5404]);
    expect(body.errors[0]!.message).toMatch(/^batch_token is not available/);
  });

  it("takes ids with slashes, once each", async () => {
    const id = "shop/shoes and 100% wool/é.jpg";
    const { status, body } = await platform.upload(jpeg, { id });
    expect([status, body.result.id]).toEqual([200, id]);
    expect((await platform.upload(jpeg, { id })).body.errors[0]).toMatchObject({ code: 5409 });
    const got = await platform.api("GET", `/v1/${encodeURIComponent(id)}`);
    expect(got.body.result.id).toBe(id);
    const [variant] = body.result.variants as string[];
    expect((await fetch(variant!)).status).toBe(200);
    expect((await platform.api("DELETE", `/v1/${encodeURIComponent(id)}`)).body.result).toEqual({});
    expect((await fetch(variant!)).status).toBe(404);
    expect((await platform.api("DELETE", `/v1/${encodeURIComponent(id)}`)).status).toBe(404);
  });
});

async function postForm(form: FormData): Promise<{ status: number; code: number }> {
  const response = await fetch(`${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: form,
  });
  const body = (await response.json()) as { errors: { code: number }[] };
  return { status: response.status, code: body.errors[0]?.code ?? 0 };
}

describe("size", () => {
  /** Sends a JPEG padded to a length, as a form whose length is declared, undeclared or wrong. */
  async function send(
    fileBytes: number,
    length: "declared" | "chunked",
  ): Promise<{ status: number; code: number | undefined }> {
    const boundary = "----boundary";
    const head = Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n`,
    );
    const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
    const url = new URL(`${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1`);
    const request = httpRequest(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${ownerToken}`,
        "content-type": `multipart/form-data; boundary=${boundary}`,
        ...(length === "declared" ? { "content-length": head.length + fileBytes + tail.length } : {}),
      },
    });
    function* body(): Iterable<Buffer> {
      yield head;
      yield jpeg;
      const filler = Buffer.alloc(1024 * 1024);
      for (let left = fileBytes - jpeg.length; left > 0; left -= filler.length)
        yield filler.subarray(0, Math.min(left, filler.length));
      yield tail;
    }
    // The response may come before the end; the rest is then not read.
    pipeline(body(), request).catch(() => {});
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const answer = (await json(response)) as { errors: { code: number }[] };
    request.destroy();
    return { status: response.statusCode!, code: answer.errors[0]?.code };
  }

  it.each([
    [100_000_000, "declared", 200],
    [104_857_600, "chunked", 200],
    [104_857_601, "declared", 413],
    [104_857_601, "chunked", 413],
    [120_000_000, "declared", 413],
  ] as const)("%i bytes, length %s: %i", async (bytes, length, expected) => {
    const before = await count();
    const { status, code } = await send(bytes, length);
    expect([status, code]).toEqual([expected, expected === 200 ? undefined : 5401]);
    expect(await count()).toBe(before + (expected === 200 ? 1 : 0));
    await expect.poll(incoming).toEqual([]);
  });

  it("stores nothing of a form that is longer than its Content-Length", async () => {
    const url = new URL(`${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1`);
    const before = await count();
    const socket = connect(Number(url.port), url.hostname);
    const head = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n';
    const body = Buffer.concat([Buffer.from(head), jpeg, Buffer.from("\r\n--x--\r\n")]);
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${ownerToken}\r\n` +
        `Content-Type: multipart/form-data; boundary=x\r\nContent-Length: ${body.length - 40}\r\n\r\n`,
    );
    socket.write(body);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 400 /);
    socket.destroy();
    expect(await count()).toBe(before);
    await expect.poll(incoming).toEqual([]);
  });

  /** The beginning of an upload of 1 MB. */
  function begin(bytes: Buffer): ClientRequest {
    const url = new URL(`${platform.ready.api}/accounts/${platform.ready.account_id}/images/v1`);
    const request = httpRequest(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${ownerToken}`,
        "content-type": "multipart/form-data; boundary=x",
        "content-length": 1_000_000,
      },
    });
    request.on("error", () => {});
    request.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n');
    request.write(bytes);
    return request;
  }

  it("leaves nothing of an aborted upload", async () => {
    const request = begin(Buffer.concat([jpeg, Buffer.alloc(200_000)]));
    await expect.poll(async () => incoming().length).toBe(1);
    request.destroy();
    await expect.poll(incoming).toEqual([]);
  });

  it("aborts a stalled upload, and leaves nothing of it", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const request = begin(jpeg);
      const answered = once(request, "response") as Promise<[IncomingMessage]>;
      await expect.poll(async () => incoming().length).toBe(1);
      vi.advanceTimersByTime(60_000);
      const [response] = await answered;
      const { errors } = (await json(response)) as { errors: { code: number }[] };
      expect([response.statusCode, errors[0]!.code]).toEqual([408, 5408]);
      await once(response.socket, "close");
      await expect.poll(incoming).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("sweeps the leftovers of a process that was killed during an upload", async () => {
    const { blobs, images } = platform.services;
    const files = blobs as FileBlobs;
    const longAgo = new Date(Date.now() - 48 * 3_600_000);
    mkdirSync(files.path("incoming"), { recursive: true });
    writeFileSync(files.path("incoming/half"), jpeg);
    utimesSync(files.path("incoming/half"), longAgo, longAgo);
    // Does what `receive` does, up to the creation of the record.
    const { blobKey } = await images.uploads.receive(
      platform.ready.account_id,
      (async function* () {
        yield jpeg;
      })(),
    );
    await images.uploads.sweep();
    expect(incoming()).toEqual([]);
    expect(await blobs.head(blobKey)).toBeDefined();
    await images.uploads.sweep(Date.now() + 48 * 3_600_000);
    expect(await blobs.head(blobKey)).toBeUndefined();
  });

  /** Files that are being written. */
  function incoming(): string[] {
    const folder = (platform.services.blobs as FileBlobs).path("incoming");
    return existsSync(folder) ? readdirSync(folder) : [];
  }
});
