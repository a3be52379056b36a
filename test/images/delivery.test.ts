import sharp from "sharp";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { fourColors, jpegOf, scenery } from "./fixtures.ts";
import { raster, sizeOf, startImagePlatform, type ImagePlatform } from "./platform.ts";

/** The delivery URL: options, negotiation, caching. */
let platform: ImagePlatform;
let photo: string;
let drawing: string;

beforeAll(async () => {
  platform = await startImagePlatform();
  photo = await platform.store(await jpegOf(scenery(400, 300)));
  const transparent = (await fourColors(80, 60)).ensureAlpha(0.5);
  drawing = await platform.store(await transparent.png().toBuffer());
});
afterAll(() => platform.close(1000));
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const runs = () => vi.spyOn(platform.services.images.engine, "run");
const types = async (id: string, accept: string): Promise<string> =>
  (await platform.deliver(id, "w=40", { accept })).headers.get("content-type")!;

it("a result whose file is removed before it is opened is looked for again", async () => {
  const missing = { path: "/no/such/result", sizeBytes: 300_000 };
  const found = vi.spyOn(platform.services.images.results, "get").mockResolvedValueOnce(missing);
  const { status, bytes } = await platform.deliver(photo, "w=47");
  expect([status, await sizeOf(bytes)]).toEqual([200, "47x35"]);
  expect(found.mock.calls.length).toBeGreaterThan(1);
});

describe("options", () => {
  it.each([
    ["quality", ["1", "100", "low", "high"], ["0", "101", "85.5", "-1", "best"]],
    ["dpr", ["1", "1.5", "3"], ["0.9", "3.1", "0", "x"]],
    ["blur", ["1", "2.5", "250"], ["0", "0.9", "251", "-1"]],
    ["sharpen", ["0", "10", ".5"], ["-1", "10.1"]],
    ["brightness", ["0", "1.3", "2"], ["2.1", "NaN", "-0.1"]],
    ["contrast", ["0", "2"], ["2.1", "NaN"]],
    ["gamma", ["0", "2"], ["2.1", "NaN"]],
    ["saturation", ["0", "3"], ["-1"]],
    ["rotate", ["0", "90", "180", "270", "360"], ["45", "-90", "89"]],
    ["w", ["1", "12000", "auto"], ["0", "12001", "1000000000", "1e3", "10.5", "-5", ""]],
    ["h", ["1", "12000"], ["0", "12001", "auto"]],
    [
      "gravity",
      ["auto", "face", "left", "right", "top", "bottom", "center", "0x0", "1x1", ".5x.5", "0.25x1"],
      ["1.1x0", "0.5", "foo", "x", "1x", "0x0x0"],
    ],
    [
      "fit",
      ["scale-down", "contain", "cover", "crop", "pad", "squeeze", "aspect-crop", "scale-up"],
      ["fill", "", "COVER"],
    ],
    [
      "format",
      ["auto", "avif", "webp", "jpeg", "jpg", "png", "gif", "json", "baseline-jpeg", "png-force"],
      ["bmp", "tiff", "svg"],
    ],
    ["metadata", ["none", "copyright", "keep"], ["all"]],
    [
      "background",
      ["red", "%23f00", "%23ff000080", "rgb(1%2C2%2C3)", "rgb(1 2 3 %2F 50%25)", "hsl(120%2C50%25%2C50%25)"],
      ["nocolour", "%23ff", "rgb(1)"],
    ],
    ["flip", ["h", "v", "hv"], ["x"]],
    ["anim", ["true", "false"], ["1"]],
    ["trim", ["1;1;1;1", "border"], ["1;1", "400;0;0;0", "x"]],
  ] as const)("%s", async (name, inside, outside) => {
    for (const value of inside) {
      const { status, bytes } = await platform.deliver(photo, `w=40,h=30,${name}=${value}`);
      expect([value, status, status === 200 ? "" : bytes.toString()]).toEqual([value, 200, ""]);
    }
    for (const value of outside) {
      const { status, bytes, headers } = await platform.deliver(photo, `${name}=${value}`);
      expect([value, status, headers.get("cf-resized")]).toEqual([value, 400, "err=9401"]);
      expect(bytes.toString()).toMatch(/^ERROR 5403: Invalid transform: /);
      if (!value.includes("400;")) {
        const named = { w: "width", h: "height", quality: "quality" }[name as "w"] ?? name;
        expect(bytes.toString()).toContain(named);
      }
    }
  });

  it("names the unknown option, and the most similar one", async () => {
    const { bytes } = await platform.deliver(photo, "widht=100", { accept: "application/json" });
    expect(JSON.parse(bytes.toString())).toMatchObject({
      success: false,
      errors: [{ code: 5403, message: expect.stringContaining("did you mean width?") as string }],
    });
    for (const options of ["w=10,", ",w=10", "w=10,,h=10", "=10"])
      expect((await platform.deliver(photo, options)).status).toBe(400);
    for (const options of ["segment=foreground", "upscale=generate", "draw=x"])
      expect((await platform.deliver(photo, options)).status).toBe(400);
  });

  it("in six spellings are one transform", async () => {
    const run = runs();
    const spellings = [
      "w=120,h=80,fit=cover,f=webp",
      "format=webp,height=80,fit=cover,width=120",
      "width=120,w=500,h=80,fit=cover,f=webp",
      "w=120%2Ch=80,fit=cover,f=webp",
      "w=120,w=300,h=80,fit=cover,f=webp,f=png",
      "w=60,h=40,dpr=2,fit=cover,f=webp,gravity=center,rotate=0,brightness=1,contrast=0,gamma=1,saturation=1,sharpen=0,anim=true,q=85,metadata=none",
    ];
    const tags = new Set<string | null>();
    for (const spelling of spellings) {
      const { status, headers } = await platform.deliver(photo, spelling);
      expect([spelling, status]).toEqual([spelling, 200]);
      tags.add(headers.get("etag"));
    }
    expect(tags.size).toBe(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it("without effect cause a warning", async () => {
    const warnings = async (options: string) =>
      (await platform.deliver(photo, options)).headers.get("warning");
    expect(await warnings("fit=cover,w=100")).toBe(
      'cf-images 299 "cover fit mode needs both width and height"',
    );
    expect(await warnings("w=100,gravity=top")).toBe(
      'cf-images 299 "gravity has no effect with fit scale-down"',
    );
    expect(await warnings("w=3000,h=2000,fit=squeeze,f=avif")).toBe(
      'cf-images 299 "image too large for AVIF"',
    );
    expect(await warnings("w=100")).toBeNull();
  });

  it("have a maximum length", async () => {
    expect((await platform.deliver(photo, `${"w=10,".repeat(400)}w=10`)).status).toBe(200);
    expect((await platform.deliver(photo, `${"w=10,".repeat(500)}w=10`)).status).toBe(400);
    expect((await platform.deliver("x".repeat(1025), "w=10")).status).toBe(404);
  });

  it("cannot request a result that is too large", async () => {
    expect((await platform.deliver(photo, "w=12000,h=12000,fit=squeeze")).status).toBe(400);
    expect((await platform.deliver(photo, "w=5000,dpr=3,fit=contain")).status).toBe(400);
  });

  it("cannot enlarge an image beyond the limit", async () => {
    const { status, bytes } = await platform.deliver(photo, "w=5001,h=5000,fit=squeeze");
    expect(status).toBe(400);
    expect(bytes.toString()).toContain("25000000 pixels but it would have 5001×5000");
    expect((await platform.deliver(photo, "w=2500,h=2500,fit=squeeze")).status).toBe(200);
  });
});

describe("formats", () => {
  it.each([
    ["", "image/jpeg", "image/png"],
    ["*/*", "image/jpeg", "image/png"],
    ["image/*", "image/jpeg", "image/png"],
    ["image/webp,*/*", "image/webp", "image/webp"],
    ["image/avif,image/webp", "image/avif", "image/avif"],
    ["image/avif;q=0,image/webp", "image/webp", "image/webp"],
    ["image/avif;q=0.0, image/webp;q=0", "image/jpeg", "image/png"],
    [`text/html,${"x/y,".repeat(1000)}image/webp`, "image/jpeg", "image/png"],
  ])("for Accept: %.40s", async (accept, ofPhoto, ofDrawing) => {
    expect([await types(photo, accept), await types(drawing, accept)]).toEqual([ofPhoto, ofDrawing]);
  });

  it("vary with Accept only when it matters, with at most three results", async () => {
    const run = runs();
    const tags = new Set<string | null>();
    for (const accept of [
      "",
      "*/*",
      "image/*",
      "image/webp",
      "image/avif",
      "image/avif,image/webp",
      "text/html",
    ]) {
      const { headers } = await platform.deliver(photo, "w=41", { accept });
      expect(headers.get("vary")).toBe("Accept");
      tags.add(headers.get("etag"));
    }
    expect([tags.size, run.mock.calls.length]).toEqual([3, 3]);
    expect((await platform.deliver(photo, "w=41,f=webp")).headers.get("vary")).toBeNull();
  });

  it("json describes the image", async () => {
    const { headers, bytes } = await platform.deliver(photo, "w=50,format=json");
    expect(headers.get("content-type")).toBe("application/json");
    expect(JSON.parse(bytes.toString())).toEqual({
      width: 50,
      height: 38,
      original: { file_size: expect.any(Number) as number, width: 400, height: 300, format: "image/jpeg" },
    });
  });

  it("follow width=auto and slow connections", async () => {
    const width = async (headers: Record<string, string>) => {
      const answer = await platform.deliver(photo, "width=auto,fit=contain,f=png", headers);
      expect(answer.headers.get("accept-ch")).toContain("Sec-CH-DPR");
      return [(await sizeOf(answer.bytes)).split("x")[0], answer.headers.get("vary")];
    };
    const always = "Sec-CH-Viewport-Width, Sec-CH-DPR, Viewport-Width, DPR, Width";
    expect(await width({ "sec-ch-viewport-width": "380", "sec-ch-dpr": "2" })).toEqual(["768", always]);
    expect(await width({ "user-agent": "iPhone Mobile" })).toEqual(["320", `${always}, User-Agent`]);
    const size = async (headers: Record<string, string>) =>
      (await platform.deliver(photo, "w=300,f=jpeg,q=95,scq=20", headers)).bytes.length;
    expect(await size({ "save-data": "on" })).toBeLessThan((await size({})) / 2);
  });
});

describe("HTTP", () => {
  it("sets caching headers, and headers that allow embedding but no scripts", async () => {
    const { headers } = await platform.deliver(photo, "w=30,f=jpeg");
    expect(Object.fromEntries(headers)).toMatchObject({
      "access-control-allow-origin": "*",
      "cache-control": "public, max-age=172800, stale-while-revalidate=7200",
      "content-disposition": 'inline; filename="picture.jpg"',
      "cross-origin-resource-policy": "cross-origin",
      "timing-allow-origin": "*",
      "x-content-type-options": "nosniff",
    });
  });

  it("returns 304 without reading the image", async () => {
    const run = runs();
    const etagOf = async () => (await platform.deliver(photo, "w=31,f=webp")).headers.get("etag")!;
    const etag = await etagOf();
    run.mockClear();
    for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const { status, bytes, headers } = await platform.deliver(photo, "w=31,f=webp", {
        "if-none-match": tags,
      });
      expect([status, bytes.length, headers.get("etag")]).toEqual([304, 0, etag]);
    }
    expect((await platform.deliver(photo, "w=31,f=webp", { "if-none-match": '"x"' })).status).toBe(200);
    const later = new Date(Date.now() + 60_000).toUTCString();
    expect((await platform.deliver(photo, "w=31,f=webp", { "if-modified-since": later })).status).toBe(304);
    // Not even a result that does not exist is made for it.
    const never = await platform.deliver(photo, "w=32,f=webp", { "if-none-match": "*" });
    expect([never.status, run.mock.calls.length]).toEqual([304, 0]);
  });

  it("answers HEAD and ranges", async () => {
    const whole = await platform.deliver(photo, "w=200,f=png");
    const url = `${platform.ready.delivery}/${platform.ready.account_hash}/${photo}/w=200,f=png`;
    const head = await fetch(url, { method: "HEAD" });
    expect(head.headers.get("content-length")).toBe(String(whole.bytes.length));
    expect((await head.arrayBuffer()).byteLength).toBe(0);
    // Ranges do not apply to HEAD.
    const part = await fetch(url, { method: "HEAD", headers: { range: "bytes=0-9" } });
    expect([part.status, part.headers.get("content-range")]).toEqual([200, null]);
    for (const [range, from, to] of [
      ["bytes=0-9", 0, 10],
      ["bytes=10-", 10, whole.bytes.length],
      ["bytes=-5", whole.bytes.length - 5, whole.bytes.length],
    ] as const) {
      const part = await platform.deliver(photo, "w=200,f=png", { range });
      expect([part.status, part.bytes.equals(whole.bytes.subarray(from, to))]).toEqual([206, true]);
      expect(part.headers.get("content-range")).toBe(`bytes ${from}-${to - 1}/${whole.bytes.length}`);
    }
    const past = await platform.deliver(photo, "w=200,f=png", { range: "bytes=99999999-" });
    expect([past.status, past.headers.get("content-range")]).toEqual([416, `bytes */${whole.bytes.length}`]);
    for (const range of ["bytes=0-1,4-5", "lines=1-2", "bytes=9-2"])
      expect((await platform.deliver(photo, "w=200,f=png", { range })).status).toBe(200);
  });

  it("names the missing part of the URL", async () => {
    const code = async (path: string) => {
      const response = await fetch(`${platform.ready.delivery}/${path}`);
      return [response.status, /^ERROR (\d+)/.exec(await response.text())?.[1]];
    };
    const { account_hash: hash } = platform.ready;
    expect(await code(`${hash}/nothing/public`)).toEqual([404, "5404"]);
    expect(await code(`${"x".repeat(22)}/${photo}/public`)).toEqual([404, "5404"]);
    expect(await code(`${hash}/${photo}/nosuchvariant`)).toEqual([404, "5404"]);
    expect(await code(`${hash}/%E0%A4%A/public`)).toEqual([404, "5404"]);
    expect(await code(hash)).toEqual([404, "5404"]);
    const posted = await fetch(`${platform.ready.delivery}/${hash}/${photo}/public`, { method: "POST" });
    expect(posted.status).toBe(404);
  });
});

describe("variants and configuration", () => {
  it("creates one of several concurrent variants of the same name", async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((width) => {
        const options = { fit: "cover", width, height: 9, metadata: "none" };
        return platform.api("POST", "/v1/variants", { id: "__proto__", options });
      }),
    );
    const [made, ...refused] = answers.toSorted((a, b) => a.status - b.status);
    expect(refused.map(({ status, body }) => `${status} ${body.errors[0]!.code}`)).toEqual(
      Array(3).fill("409 5409"),
    );
    expect((await platform.api("GET", "/v1/variants/__proto__")).body.result).toEqual(made!.body.result);
    expect((await platform.api("DELETE", "/v1/variants/__proto__")).status).toBe(200);
  });

  it("are delivered by name, and change at once", async () => {
    const options = { fit: "cover", width: 50, height: 50, metadata: "none" };
    const made = await platform.api("POST", "/v1/variants", { id: "thumb", options });
    expect(made.body.result.variant).toEqual({ id: "thumb", options, neverRequireSignedURLs: false });
    expect((await platform.api("POST", "/v1/variants", { id: "thumb", options })).status).toBe(409);
    expect((await platform.api("GET", "/v1/variants")).body.result.variants).toMatchObject({
      public: { id: "public" },
      thumb: { id: "thumb", options },
    });
    expect(await sizeOf((await platform.deliver(photo, "thumb")).bytes)).toBe("50x50");
    const changed = { ...options, width: 60, browser_ttl: 3600 };
    await platform.api("PATCH", "/v1/variants/thumb", { options: changed });
    const delivered = await platform.deliver(photo, "thumb");
    expect(await sizeOf(delivered.bytes)).toBe("60x50");
    expect(delivered.headers.get("cache-control")).toContain("max-age=3600");
    expect((await platform.api("GET", `/v1/${photo}`)).body.result.variants).toHaveLength(2);
    await platform.api("DELETE", "/v1/variants/thumb");
    expect((await platform.deliver(photo, "thumb")).status).toBe(404);
    expect((await platform.api("DELETE", "/v1/variants/public")).status).toBe(400);
  });

  it("options in URLs can be disabled, and the browser cache time is configurable", async () => {
    await platform.api("PATCH", "/v1/config", { flexible_variants: false, browser_ttl: 7200 });
    const refused = await platform.deliver(photo, "w=10");
    expect([refused.status, refused.headers.get("cf-resized")]).toEqual([403, "err=9429"]);
    expect((await platform.deliver(photo, "public")).headers.get("cache-control")).toContain("max-age=7200");
    await platform.api("PATCH", "/v1/config", { flexible_variants: true, browser_ttl: null });
    expect((await platform.deliver(photo, "w=10")).status).toBe(200);
  });
});

it("an image that changes again and again is never missing", async () => {
  const id = await platform.store(await jpegOf(scenery(1200, 900)));
  const ending = new AbortController();
  const changing = (async () => {
    for (let i = 0; !ending.signal.aborted; i++)
      await platform.api("PATCH", `/v1/${id}`, { metadata: { i } });
  })();
  const statuses = new Set<number>();
  for (let width = 400; width < 430; width++) statuses.add((await platform.deliver(id, `w=${width}`)).status);
  ending.abort();
  await changing;
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses).toContain(200);
});

it("a deleted image is gone everywhere, also during a transform", async () => {
  const id = await platform.store(await jpegOf(scenery(1200, 900)));
  expect((await platform.deliver(id, "w=50")).status).toBe(200);
  const underway = platform.deliver(id, "w=900,f=avif");
  await expect.poll(() => platform.services.images.engine.pid).toBeDefined();
  expect((await platform.api("DELETE", `/v1/${id}`)).status).toBe(200);
  expect([200, 404, 422]).toContain((await underway).status);
  expect((await platform.deliver(id, "w=50")).status).toBe(404);
  expect((await platform.deliver(id, "w=900,f=avif")).status).toBe(404);
});

it("images with the same bytes share no results, and are deleted independently", async () => {
  const bytes = await jpegOf(scenery(300, 200));
  const [one, other] = [await platform.store(bytes), await platform.store(bytes)];
  const statusOf = async (id: string) => (await platform.deliver(id, "w=51")).headers.get("cf-cache-status");
  expect([await statusOf(one), await statusOf(one), await statusOf(other)]).toEqual(["MISS", "HIT", "MISS"]);
  expect((await platform.api("DELETE", `/v1/${one}`)).status).toBe(200);
  expect(await statusOf(other)).toBe("HIT");
});

it("returns the same bytes again, and a different ETag for each size", async () => {
  const [first, second] = [
    await platform.deliver(photo, "w=77,f=png"),
    await platform.deliver(photo, "w=77,f=png"),
  ];
  expect([first.headers.get("cf-cache-status"), second.headers.get("cf-cache-status")]).toEqual([
    "MISS",
    "HIT",
  ]);
  expect(first.bytes.equals(second.bytes)).toBe(true);
  const { data } = await raster(first.bytes);
  expect(data.length).toBe(77 * 58 * 3);
  expect((await sharp(first.bytes).metadata()).format).toBe("png");
});
