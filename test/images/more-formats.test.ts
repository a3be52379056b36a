import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cpuMs } from "../helpers/cpu-ms.ts";
import { ownerToken } from "../helpers/server.ts";
import { fourColors, painted } from "./fixtures.ts";
import { colorDistance, raster, sizeOf, ssim, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** AVIF and SVG, when the settings accept them. */
let platform: ImagePlatform;
beforeAll(async () => {
  platform = await startImagePlatform({ imageAcceptAvif: true, imageAcceptSvg: true });
});
afterAll(() => platform.close(1000));

describe("SVG", () => {
  const hostile = `<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg [<!ENTITY xxe SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="40" height="30" onload="alert(1)">
  <script>alert(2)</script>
  <style>@import url("https://evil.example/a.css");</style>
  <image href="https://evil.example/a.png" width="9" height="9"/>
  <use xlink:href="https://evil.example/a.svg#b"/>
  <foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="https://evil.example"/></body></foreignObject>
  <a href="javascript:alert(3)"><rect width="40" height="30" fill="#f00"/></a>
  <text>&xxe;</text>
</svg>`;

  it("is delivered without scripts and external references, never as pixels, with any options", async () => {
    const id = await platform.store(Buffer.from(hostile));
    const first = await platform.deliver(id, "w=10,f=png,blur=5", { accept: "image/avif,image/webp" });
    expect([first.status, first.headers.get("content-type")]).toEqual([200, "image/svg+xml"]);
    const text = first.bytes.toString();
    expect(text).toContain('<rect width="40" height="30" fill="#f00"/>');
    for (const token of [
      "script",
      "onload",
      "DOCTYPE",
      "ENTITY",
      "passwd",
      "@import",
      "evil.example",
      "foreignObject",
      "iframe",
      "javascript:",
    ])
      expect(text).not.toContain(token);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      "content-security-policy": expect.stringContaining("default-src 'none'") as string,
      "x-content-type-options": "nosniff",
      "content-disposition": 'inline; filename="picture.svg"',
      warning: 'cf-images 299 "an SVG is delivered as it is: options have no effect"',
    });
    expect(first.headers.get("content-security-policy")).toContain("sandbox");
    // Still a picture of the declared size.
    expect(await sizeOf(first.bytes)).toBe("40x30");
    const again = await platform.deliver(id, "public");
    expect([again.bytes.equals(first.bytes), again.headers.get("cf-cache-status")]).toEqual([true, "HIT"]);
    const described = await platform.deliver(id, "f=json");
    expect(JSON.parse(described.bytes.toString())).toMatchObject({
      width: 40,
      height: 30,
      original: { format: "image/svg+xml", file_size: Buffer.byteLength(hostile) },
    });
  });

  it("returns its original bytes only as a download", async () => {
    const id = await platform.store(Buffer.from(hostile));
    const blob = await platform.services.images.stored.find(platform.ready.account_id, id);
    expect(blob.content).toMatchObject({ format: "svg", width: 40, height: 30 });
    const { api, account_id } = platform.ready;
    const answer = await fetch(`${api}/accounts/${account_id}/images/v1/${id}/blob`, {
      headers: { authorization: `Bearer ${ownerToken}` },
    });
    expect(await answer.text()).toBe(hostile);
    expect(answer.headers.get("content-disposition")).toMatch(/^attachment/);
    expect(answer.headers.get("content-security-policy")).toContain("sandbox");
  });

  it.each([
    [
      "entities made of each other",
      `<!DOCTYPE svg [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><svg>&c;</svg>`,
      5400,
    ],
    ["other XML", `<?xml version="1.0"?><rss/>`, 5400],
    ["a page", `<!-- <svg> --><html/>`, 5400],
    ["a side of 100,000", `<svg width="100000" height="10"/>`, 5401],
    ["more text than is read as a whole", `<svg>${" ".repeat(5 * 1024 * 1024)}</svg>`, 5401],
  ])("refuses %s at once", async (_what, text, code) => {
    const beganMs = cpuMs();
    const { status, body } = await platform.upload(text);
    expect([Math.floor(status / 100), body.errors[0]?.code]).toEqual([4, code]);
    if (text.length < 1000) expect(cpuMs() - beganMs).toBeLessThan(1000);
  });

  it("that is truncated returns 422, as other pictures do", async () => {
    for (const text of ["<svg><g>", Buffer.from("<svg>\xff</svg>", "latin1")]) {
      const id = await platform.store(Buffer.from(text));
      expect((await platform.deliver(id, "public")).status).toBe(422);
    }
  });
});

describe("AVIF", () => {
  it("is a source like any other", async () => {
    const image = await (await fourColors(120, 80)).png().toBuffer();
    const id = await platform.store(await sharp(image).avif({ quality: 90, effort: 0 }).toBuffer());
    const { content } = await platform.services.images.stored.find(platform.ready.account_id, id);
    expect(content).toMatchObject({ format: "avif", width: 120, height: 80, hasAlpha: false, frames: 1 });
    const small = await platform.deliver(id, "w=60,h=40,fit=squeeze,f=png");
    expect(await ssim(small.bytes, await sharp(image).resize(60, 40).png().toBuffer())).toBeGreaterThan(0.95);
    expect((await platform.deliver(id, "w=60")).headers.get("content-type")).toBe("image/jpeg");
    const described = await platform.deliver(id, "f=json");
    expect(JSON.parse(described.bytes.toString())).toMatchObject({ original: { format: "image/avif" } });
  });

  it("keeps transparency", async () => {
    const half = await painted(40, 40, (x) => (x < 20 ? [255, 0, 0, 255] : [0, 0, 0, 0]));
    const id = await platform.store(await half.avif({ lossless: true }).toBuffer());
    const { headers, bytes } = await platform.deliver(id, "w=20,background=blue");
    expect(headers.get("content-type")).toBe("image/jpeg");
    const { at } = await raster(bytes);
    expect(colorDistance(at(17, 10), [0, 0, 255])).toBeLessThan(12);
    expect((await platform.deliver(id, "w=20")).headers.get("content-type")).toBe("image/png");
  });

  it("is recognized by its bytes; related formats are refused", async () => {
    const whole = await (await fourColors(64, 48)).avif({ effort: 0 }).toBuffer();
    const answer = await platform.upload(whole.subarray(0, 120));
    expect(answer.body.errors[0]).toMatchObject({ code: 5400 });
    for (const brand of ["heic", "heix", "mif1", "isom"]) {
      const { body } = await platform.upload(Buffer.from(`\0\0\0\x18ftyp${brand}\0\0\0\0mif1heic`, "latin1"));
      expect(body.errors[0]!.message).toMatch(/expected a JPEG, PNG, GIF, WebP, AVIF or SVG image/);
    }
  });
});
