import { request } from "node:http";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";
import { fourColors, jpegOf, painted, pngOf, quadrants } from "./fixtures.ts";
import { colorDistance, raster, sizeOf } from "./platform.ts";

/** `env.IMAGES` in scripts, through the edge. */
let hosting: Hosting;
let picture: Buffer;
let stamp: Buffer;

/** A script whose handler has the given body; its result is returned as JSON, or is the response. */
const script = (body: string): string => `
export default {
  async fetch(request, env) {
    const { IMAGES } = env;
    const parts = request.method === "POST" ? await request.formData() : undefined;
    const base = () => parts.get("base").stream();
    const stamp = () => parts.get("stamp").stream();
    try {
      const result = await (async () => { ${body} })();
      return result instanceof Response ? result : Response.json(result);
    } catch (error) {
      return Response.json({ name: error.name, message: error.message, code: error.code }, { status: 500 });
    }
  },
};`;

let count = 0;
async function run(
  body: string,
  files: { base?: Buffer; stamp?: Buffer } = {},
): Promise<{ status: number; type: string | null; bytes: Buffer }> {
  const name = `images-${++count}`;
  await hosting.deploy(name, { code: script(body), bindings: [{ type: "images", name: "IMAGES" }] });
  const form = new FormData();
  form.set("base", new File([(files.base ?? picture) as Buffer<ArrayBuffer>], "base"));
  form.set("stamp", new File([(files.stamp ?? stamp) as Buffer<ArrayBuffer>], "stamp"));
  const encoded = new Response(form);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      hosting.ready.edge,
      {
        method: "POST",
        headers: { host: hosting.hostOf(name), "content-type": encoded.headers.get("content-type")! },
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            type: response.headers["content-type"] ?? null,
            bytes: Buffer.concat(chunks),
          }),
        );
      },
    );
    outgoing.on("error", reject);
    encoded.arrayBuffer().then((bytes) => outgoing.end(Buffer.from(bytes)), reject);
  });
}
async function json(body: string, files?: { base?: Buffer }): Promise<unknown> {
  const { bytes } = await run(body, files);
  return JSON.parse(bytes.toString());
}

beforeAll(async () => {
  hosting = await startHosting();
  picture = await jpegOf(fourColors(200, 120));
  stamp = await pngOf(painted(20, 10, () => [255, 255, 255, 255]));
});
afterAll(() => hosting.close(1000));

it("transforms an image and returns the result", async () => {
  const { status, type, bytes } = await run(
    'return (await IMAGES.input(base()).transform({ width: 100, rotate: 90 }).output({ format: "image/webp", quality: 90 })).response();',
  );
  expect([status, type, await sizeOf(bytes), (await sharp(bytes).metadata()).format]).toEqual([
    200,
    "image/webp",
    "100x167",
    "webp",
  ]);
});

it("uses the format of the transform, or of the image itself", async () => {
  for (const [options, type] of [
    ["{ width: 50, format: 'avif', quality: 60 }", "image/avif"],
    ["{ width: 50 }", "image/jpeg"],
  ] as const) {
    const answer = await run(
      `return (await IMAGES.input(base()).transform(${options}).output()).response();`,
    );
    expect([answer.status, answer.type]).toEqual([200, type]);
  }
  expect(await json("return (await IMAGES.input(stamp()).output({ format: 'png' })).contentType();")).toBe(
    "image/png",
  );
});

it("chains transforms: each works on the result of the previous one", async () => {
  const { bytes } = await run(`
    const output = await IMAGES.input(base())
      .transform({ width: 100, height: 100, fit: "cover" })
      .transform({ trim: { left: 50 } })
      .transform({ width: 25, height: 50, fit: "squeeze", border: { color: "black", width: 5 } })
      .output({ format: "png" });
    return output.response({ headers: { "cache-control": "no-store" } });`);
  const { width, height, at } = await raster(bytes);
  expect([width, height]).toEqual([35, 60]);
  expect(at(2, 2)).toEqual([0, 0, 0]);
  expect(colorDistance(at(17, 12), quadrants[1]!)).toBeLessThan(12);
  expect(colorDistance(at(17, 48), quadrants[3]!)).toBeLessThan(12);
});

describe("draw", () => {
  const drawn = async (steps: string): Promise<Awaited<ReturnType<typeof raster>>> => {
    const { status, bytes } = await run(
      `return (await IMAGES.input(base()).transform({ width: 100 })${steps}.output({ format: "png" })).response();`,
    );
    expect([status, status === 200 ? "" : bytes.toString()]).toEqual([200, ""]);
    return raster(bytes);
  };
  const white = [255, 255, 255];
  const isWhite = (pixel: number[]): boolean => colorDistance(pixel, white) < 10;

  it("draws one image onto another at the given position", async () => {
    const corner = await drawn(".draw(stamp(), { top: 5, left: 5 })");
    expect([isWhite(corner.at(6, 6)), isWhite(corner.at(24, 14)), isWhite(corner.at(26, 16))]).toEqual([
      true,
      true,
      false,
    ]);
    const far = await drawn(".draw(stamp(), { bottom: 0, right: 0 })");
    expect([isWhite(far.at(99, 59)), isWhite(far.at(79, 49))]).toEqual([true, false]);
    const middle = await drawn(".draw(stamp())");
    expect([isWhite(middle.at(50, 30)), isWhite(middle.at(5, 5))]).toEqual([true, false]);
  });

  it("draws with opacity, repetition and transforms, and cuts off overhanging parts", async () => {
    const half = await drawn(".draw(stamp(), { top: 5, left: 5, opacity: 0.5 })");
    expect(
      colorDistance(
        half.at(10, 10),
        quadrants[0]!.map((value) => (value + 255) / 2),
      ),
    ).toBeLessThan(12);
    const rows = await drawn(".draw(stamp(), { top: 0, left: 0, repeat: 'x' })");
    expect([isWhite(rows.at(95, 5)), isWhite(rows.at(5, 15))]).toEqual([true, false]);
    const all = await drawn(".draw(stamp(), { repeat: true })");
    expect(isWhite(all.at(99, 59))).toBe(true);
    const turned = await drawn(".draw(IMAGES.input(stamp()).transform({ rotate: 90 }), { top: 0, left: 0 })");
    expect([isWhite(turned.at(9, 19)), isWhite(turned.at(11, 5))]).toEqual([true, false]);
    const over = await drawn(".draw(stamp(), { top: -5, left: 90 })");
    expect([over.width, over.height, isWhite(over.at(99, 4)), isWhite(over.at(99, 6))]).toEqual([
      100,
      60,
      true,
      false,
    ]);
    const large = await drawn(
      ".draw(IMAGES.input(stamp()).transform({ width: 400, fit: 'contain' }), { top: 0, left: 0 })",
    );
    expect([large.width, large.height, isWhite(large.at(99, 59))]).toEqual([100, 60, true]);
  });

  it("cuts corners out with a mask", async () => {
    const { bytes } = await run(
      `return (await IMAGES.input(base()).transform({ width: 100 }).draw(stamp(), { top: 0, left: 0, composite: "out" }).output({ format: "png" })).response();`,
    );
    expect((await raster(bytes)).channels).toBe(4);
  });

  it("draws between transforms, in order", async () => {
    const later = await drawn(".draw(stamp(), { top: 0, left: 0 }).transform({ rotate: 180 })");
    expect([isWhite(later.at(99, 59)), isWhite(later.at(0, 0))]).toEqual([true, false]);
  });
});

it("takes bytes of any kind, and base64", async () => {
  for (const data of [
    "base()",
    'await parts.get("base").arrayBuffer()',
    'new Uint8Array(await parts.get("base").arrayBuffer())',
    'parts.get("base")',
    "new Response(base())",
  ])
    expect(await json(`return IMAGES.info(${data});`)).toEqual({
      format: "image/jpeg",
      fileSize: picture.length,
      width: 200,
      height: 120,
    });
  const text = `const bytes = new Uint8Array(await parts.get("base").arrayBuffer());
    const base64 = bytes.toBase64();
    const stream = () => new Response(base64).body;`;
  expect(await json(`${text} return IMAGES.info(stream(), { encoding: "base64" });`)).toMatchObject({
    width: 200,
  });
  const encoded = await run(
    'return new Response((await IMAGES.input(base()).transform({ width: 33 }).output({ format: "png" })).image({ encoding: "base64" }));',
  );
  expect(await sizeOf(Buffer.from(encoded.bytes.toString(), "base64"))).toBe("33x20");
});

it.each<[what: string, body: string, code: number | undefined, words: RegExp, base?: () => Buffer]>([
  [
    "an option out of its range",
    "await IMAGES.input(base()).transform({ blur: 500 }).output()",
    5403,
    /^IMAGES_TRANSFORM_ERROR 5403: Invalid transform: expected a number from 1 to 250 for blur but received 500/,
  ],
  [
    "an unknown option",
    "await IMAGES.input(base()).transform({ widht: 5 }).output()",
    5403,
    /did you mean width/,
  ],
  [
    "an unknown output option",
    "await IMAGES.input(base()).output({ format: 'png', colour: 1 })",
    5403,
    /"colour"/,
  ],
  ["an unknown format", "await IMAGES.input(base()).output({ format: 'image/bmp' })", 5403, /for format/],
  [
    "two sides at once",
    "await IMAGES.input(base()).draw(stamp(), { left: 1, right: 1 }).output()",
    5403,
    /either left or right/,
  ],
  [
    "too much opacity",
    "await IMAGES.input(base()).draw(stamp(), { opacity: 1.1 }).output()",
    5403,
    /opacity/,
  ],
  [
    "an unknown draw option",
    "await IMAGES.input(base()).draw(stamp(), { colour: 1 }).output()",
    5403,
    /colour/,
  ],
  [
    "bytes that are not an image",
    "await IMAGES.input(base()).output()",
    5400,
    /received HTML/,
    () => Buffer.from("<html>"),
  ],
  [
    "info of bytes that are not an image",
    "return await IMAGES.info(base())",
    5400,
    /^IMAGES_INFO_ERROR 5400/,
    () => Buffer.from("nothing at all"),
  ],
  [
    "an image that is used twice",
    "const one = IMAGES.input(base()); await one.output(); await one.output()",
    9525,
    /used already/,
  ],
  [
    "an unknown image",
    "return await IMAGES.hosted.list()",
    undefined,
    /^IMAGES\.hosted\.list\(\) is not available here$/,
  ],
  ["a string instead of data", "IMAGES.input('text')", undefined, /Expected an image as a ReadableStream/],
])("throws for %s", async (_what, body, code, words, base) => {
  const { status, bytes } = await run(body, base === undefined ? {} : { base: base() });
  const error = JSON.parse(bytes.toString()) as { name: string; message: string; code?: number };
  expect([status, error.code]).toEqual([500, code]);
  expect(error.message).toMatch(words);
  if (code !== undefined) expect(error.name).toBe("ImagesError");
});

it("keeps working after a large body that was refused by its first bytes", async () => {
  const base = Buffer.concat([Buffer.from("<html>"), Buffer.alloc(8_000_000)]);
  const body = `
    const codes = [];
    const note = (error) => codes.push(error.code);
    await IMAGES.info(base()).catch(note);
    await IMAGES.input(base()).output().catch(note);
    await IMAGES.input(base()).transform({ widht: 1 }).output().catch(note);
    return { codes, type: (await IMAGES.info(stamp())).format };`;
  for (let round = 0; round < 3; round++)
    expect(await json(body, { base })).toEqual({ codes: [5400, 5400, 5403], type: "image/png" });
});

it("throws for pictures that cannot be decoded, and leaves no files", async () => {
  const cut = picture.subarray(0, Math.floor(picture.length * 0.7));
  const { bytes } = await run(
    'await IMAGES.input(base()).transform({ width: 20 }).output({ format: "png" })',
    { base: cut },
  );
  expect(JSON.parse(bytes.toString())).toMatchObject({ code: 5403 });
});
