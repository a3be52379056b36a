import sharp, { type Sharp } from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { animation, fourColors, hollowGif, jpegOf, painted, pngOf, quadrants, scenery } from "./fixtures.ts";
import {
  colorDistance,
  raster,
  sizeOf,
  ssim,
  startImagePlatform,
  visibleDistance,
  type ImagePlatform,
} from "./platform.ts";

/** Transforms, checked by the pixels of their results. */
let platform: ImagePlatform;

beforeAll(async () => {
  platform = await startImagePlatform();
});
afterAll(() => platform.close(1000));

async function made(source: Uint8Array, options: string, headers?: Record<string, string>): Promise<Buffer> {
  const delivered = await platform.deliver(await platform.store(source), options, headers);
  expect([options, delivered.status, delivered.status === 200 ? "" : delivered.bytes.toString()]).toEqual([
    options,
    200,
    "",
  ]);
  return delivered.bytes;
}

it("scales a single pixel as requested", async () => {
  const point = await sharp({ create: { width: 1, height: 1, channels: 4, background: "#00ff0080" } })
    .png()
    .toBuffer();
  expect(await sizeOf(await made(point, "w=1000,fit=scale-down"))).toBe("1x1");
  expect(await sizeOf(await made(point, "w=64,h=64,fit=cover"))).toBe("64x64");
  const padded = await raster(await made(point, "w=10,h=5,fit=pad,background=red,f=png"));
  expect([padded.width, padded.height]).toEqual([10, 5]);
  expect(colorDistance(padded.at(0, 2), [255, 0, 0])).toBeLessThanOrEqual(2);
  expect(colorDistance(padded.at(5, 2), [127, 128, 0])).toBeLessThanOrEqual(2);
});

it("brings 16 bits to 8 without steps", async () => {
  const [width, height] = [512, 64];
  const data = new Uint16Array(width * height * 3);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) data.set([x * 128, x * 128, 65_535 - x * 128], (y * width + x) * 3);
  const source = await sharp(data, { raw: { width, height, channels: 3 } })
    .toColourspace("rgb16")
    .png()
    .toBuffer();
  expect((await sharp(source).metadata()).depth).toBe("ushort");
  const bytes = await made(source, "w=512,f=png");
  expect((await sharp(bytes).metadata()).depth).toBe("uchar");
  const { at } = await raster(bytes);
  for (let x = 1; x < width; x++) expect(at(x, 30)[0]!).toBeGreaterThanOrEqual(at(x - 1, 30)[0]!);
  expect(await ssim(bytes, await sharp(source).png().toBuffer())).toBeGreaterThan(0.99);
});

it("converts CMYK to sRGB, with a profile and without", async () => {
  // Colours that ink can show.
  const rgb = await pngOf(painted(200, 150, (x, y) => [90 + x / 2, 120 + y / 3, 170 - x / 4]));
  for (const withProfile of [false, true]) {
    const pipeline = sharp(rgb).toColourspace("cmyk");
    const cmyk = await (withProfile ? pipeline.withIccProfile("cmyk") : pipeline)
      .jpeg({ quality: 95 })
      .toBuffer();
    expect((await sharp(cmyk).metadata()).channels).toBe(4);
    const bytes = await made(cmyk, "w=200,f=webp,q=95");
    expect((await sharp(bytes).metadata()).channels).toBe(3);
    const [a, b] = [await raster(bytes), await raster(rgb)];
    let difference = 0;
    for (let x = 0; x < 200; x++)
      for (let y = 0; y < 150; y++) difference += visibleDistance(a.at(x, y), b.at(x, y));
    expect(difference / (200 * 150)).toBeLessThan(6);
  }
});

it("converts wide-gamut colours to sRGB", async () => {
  // Pure red of Display P3 is outside sRGB; as numbers it is 255, 0, 0 in both.
  const p3 = await sharp({ create: { width: 32, height: 32, channels: 3, background: "#c83232" } })
    .withIccProfile("p3")
    .jpeg({ quality: 100, chromaSubsampling: "4:4:4" })
    .toBuffer();
  const raw = [...(await sharp(p3).keepIccProfile().raw().toBuffer()).subarray(0, 3)];
  const bytes = await made(p3, "w=32,f=png");
  expect((await sharp(bytes).metadata()).icc).toBeUndefined();
  const pixel = (await raster(bytes)).at(16, 16);
  expect(colorDistance(pixel, [200, 50, 50])).toBeLessThan(6);
  expect(colorDistance(pixel, raw)).toBeGreaterThan(10);
});

it("decodes a progressive JPEG like a baseline one", async () => {
  const image = await pngOf(scenery(1600, 1000));
  const [baseline, progressive] = await Promise.all(
    [false, true].map((isProgressive) =>
      sharp(image).jpeg({ quality: 92, progressive: isProgressive }).toBuffer(),
    ),
  );
  const options = "w=400,f=png";
  expect(await ssim(await made(baseline!, options), await made(progressive!, options))).toBeGreaterThan(
    0.999,
  );
});

describe("EXIF orientation", () => {
  // How a camera stores the upright picture for each orientation.
  const stored: Record<number, (image: Sharp) => Sharp> = {
    1: (image) => image,
    2: (image) => image.flop(),
    3: (image) => image.rotate(180),
    4: (image) => image.flip(),
    5: (image) => image.rotate(90).flop(),
    6: (image) => image.rotate(270),
    7: (image) => image.rotate(270).flop(),
    8: (image) => image.rotate(90),
  };
  const quarters = async (bytes: Uint8Array): Promise<number[]> => {
    const { width, height, at } = await raster(bytes);
    return [
      [0.25, 0.25],
      [0.75, 0.25],
      [0.25, 0.75],
      [0.75, 0.75],
    ].map(([x, y]) => {
      const pixel = at(x! * width, y! * height);
      return quadrants.findIndex((color) => colorDistance(color, pixel) < 30);
    });
  };

  it.each([1, 2, 3, 4, 5, 6, 7, 8])("%i is applied before anything else", async (orientation) => {
    const upright = await pngOf(fourColors(120, 80));
    const turned = await stored[orientation]!(sharp(upright)).png().toBuffer();
    // sharp flops before it rotates; a second pass keeps the order above.
    const source = await sharp(
      orientation === 5 || orientation === 7 ? await transverse(upright, orientation) : turned,
    )
      .withMetadata({ orientation })
      .jpeg({ quality: 98, chromaSubsampling: "4:4:4" })
      .toBuffer();
    const plain = await made(source, "w=60,f=png");
    expect([await sizeOf(plain), await quarters(plain)]).toEqual(["60x40", [0, 1, 2, 3]]);
    expect((await sharp(plain).metadata()).orientation ?? 1).toBe(1);
    const top = await raster(await made(source, "w=60,h=20,fit=cover,gravity=top,f=png"));
    expect(
      [colorDistance(top.at(5, 10), quadrants[0]!), colorDistance(top.at(55, 10), quadrants[1]!)].every(
        (d) => d < 30,
      ),
    ).toBe(true);
    const rotated = await made(source, "rotate=90,w=40,f=png");
    expect([await sizeOf(rotated), await quarters(rotated)]).toEqual(["40x60", [2, 0, 3, 1]]);
    const trimmed = await made(source, "trim=40;0;0;0,f=png");
    expect(await sizeOf(trimmed)).toBe("120x40");
    expect(await quarters(trimmed)).toEqual([2, 3, 2, 3]);
    const kept = await made(source, "w=60,f=jpeg,metadata=keep");
    expect((await sharp(kept).metadata()).orientation ?? 1).toBe(1);
    expect(await quarters(kept)).toEqual([0, 1, 2, 3]);
  });

  async function transverse(upright: Buffer, orientation: number): Promise<Buffer> {
    const rotated = await sharp(upright)
      .rotate(orientation === 5 ? 90 : 270)
      .png()
      .toBuffer();
    return sharp(rotated).flop().png().toBuffer();
  }
});

it("keeps the requested EXIF: none, the copyright, or all", async () => {
  const source = await sharp(await pngOf(fourColors(60, 40)))
    .withExif({
      IFD0: { Copyright: "(c) 2026", Artist: "Somebody", Make: "Camera" },
      IFD3: { GPSLatitude: "10/1 20/1 30/1", GPSLatitudeRef: "N" },
    })
    .withMetadata({ orientation: 6 })
    .jpeg()
    .toBuffer();
  // The EXIF tag with the GPS data.
  const hasPlace = (exif: string | undefined) => /\x88\x25|\x25\x88/.test(exif ?? "");
  const exif = async (options: string): Promise<string | undefined> =>
    (await sharp(await made(source, options)).metadata()).exif?.toString("latin1");
  expect((await sharp(source).metadata()).exif!.toString("latin1")).toContain("Camera");
  for (const format of ["jpeg", "webp", "avif"]) {
    expect((await exif(`w=30,f=${format},metadata=none`)) ?? "").not.toContain("2026");
    const rights = await exif(`w=30,f=${format},metadata=copyright`);
    expect([rights?.includes("(c) 2026"), rights?.includes("Somebody")]).toEqual([true, true]);
    expect([rights?.includes("Camera"), hasPlace(rights)]).toEqual([false, false]);
    const all = await exif(`w=30,f=${format},metadata=keep`);
    expect([all?.includes("(c) 2026"), all?.includes("Camera"), hasPlace(all)]).toEqual([true, true, true]);
  }
  expect(await exif("w=30,f=jpeg")).toContain("(c) 2026");
  expect((await exif("w=30,f=webp")) ?? "").not.toContain("2026");
  const kept = await made(source, "w=30,f=jpeg,metadata=keep");
  expect((await sharp(kept).metadata()).orientation ?? 1).toBe(1);
  expect(await sizeOf(kept)).toBe("30x45");
});

describe("animations", () => {
  it.each(["gif", "webp"] as const)("%s stays animated when possible", async (format) => {
    const source = await animation(format, { width: 200, height: 120, frames: 10 });
    const id = await platform.store(source);
    const described = async (options: string, accept = "") => {
      const { headers, bytes } = await platform.deliver(id, options, { accept });
      const { pages, width, pageHeight, height, delay, loop } = await sharp(bytes, {
        animated: true,
      }).metadata();
      return {
        type: headers.get("content-type"),
        pages: pages ?? 1,
        size: `${width}x${pageHeight ?? height}`,
        delay,
        loop,
      };
    };
    const moving = { pages: 10, size: "100x60", delay: Array.from({ length: 10 }, () => 80), loop: 3 };
    expect(await described("w=100,f=webp")).toEqual({ type: "image/webp", ...moving });
    expect(await described("w=100,f=gif")).toEqual({ type: "image/gif", ...moving });
    expect(await described("w=100", "image/webp")).toEqual({ type: "image/webp", ...moving });
    expect(await described("w=100", "image/avif,image/webp")).toEqual({ type: "image/webp", ...moving });
    expect(await described("w=100")).toEqual({ type: "image/gif", ...moving });
    expect(await described("w=100,f=jpeg")).toMatchObject({ type: "image/jpeg", pages: 1, size: "100x60" });
    expect(await described("w=100,f=webp,anim=false")).toMatchObject({ pages: 1, size: "100x60" });
    expect(await described("w=50,h=60,fit=cover,rotate=90,f=webp")).toMatchObject({
      pages: 10,
      size: "50x60",
    });
    expect(await described("w=50,h=60,fit=pad,background=red,f=gif,blur=3")).toMatchObject({
      pages: 10,
      size: "50x60",
    });
  });

  it("that are too large are delivered unchanged", async () => {
    const source = hollowGif(1000, 1000, 60);
    const { status, headers, bytes } = await platform.deliver(await platform.store(source), "w=100");
    expect([status, headers.get("content-type"), bytes.equals(source)]).toEqual([200, "image/gif", true]);
    expect(headers.get("warning")).toBe('cf-images 299 "the animation is too large to be transformed"');
  });
});

describe("colours and effects", () => {
  const gradient = () => painted(256, 40, (x) => [x, x, x]);

  it("brightness, contrast and gamma work as documented", async () => {
    const source = await pngOf(gradient());
    const at = async (options: string, x: number) =>
      (await raster(await made(source, `f=png,${options}`))).at(x, 20)[0]!;
    expect(await at("brightness=1.5", 100)).toBe(150);
    expect(await at("brightness=0", 100)).toBe(100);
    expect(await at("contrast=0.5", 28)).toBe(78);
    expect(await at("gamma=2", 64)).toBe(Math.round(255 * Math.sqrt(64 / 255)));
    expect(await at("gamma=0", 64)).toBe(64);
    const color = await pngOf(painted(8, 8, () => [200, 100, 50]));
    const grey = (await raster(await made(color, "f=png,saturation=0"))).at(4, 4);
    expect(colorDistance(grey, [grey[0]!, grey[0]!, grey[0]!])).toBe(0);
  });

  it("blur and sharpening grow with their values", async () => {
    const edges = await pngOf(
      painted(128, 128, (x, y) => (((x >> 4) + (y >> 4)) % 2 === 0 ? [40, 40, 40] : [215, 215, 215])),
    );
    const deviation = async (options: string) => {
      const { data } = await raster(await made(edges, `f=png,${options}`));
      const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
      return Math.sqrt(data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length);
    };
    const blurred = [];
    for (const radius of [1, 5, 20, 60, 250]) blurred.push(await deviation(`blur=${radius}`));
    expect(blurred).toEqual(blurred.toSorted((a, b) => b - a));
    expect(blurred.at(-1)).toBeLessThan(6);
    expect(await deviation("sharpen=5")).toBeGreaterThan(await deviation("sharpen=0"));
  });

  it("transparency becomes white in formats without it, and leaves no dark edge", async () => {
    const source = await pngOf(painted(100, 100, (x) => (x < 50 ? [255, 0, 0, 255] : [0, 0, 0, 0])));
    const jpeg = await raster(await made(source, "w=100,f=jpeg,q=95"));
    expect(colorDistance(jpeg.at(90, 50), [255, 255, 255])).toBeLessThan(4);
    const small = await raster(await made(source, "w=33,f=png"));
    for (let x = 0; x < 33; x++) {
      const [r, , , alpha] = small.at(x, 16);
      if (alpha! > 8) expect(r).toBeGreaterThan(240);
    }
    const blue = await raster(await made(source, "w=100,f=png,background=blue"));
    expect(colorDistance(blue.at(90, 50), [0, 0, 255])).toBe(0);
  });

  it("trim finds the border, also in palette and grey images", async () => {
    const framed = await pngOf(
      painted(60, 40, (x, y) => (x < 10 || x >= 50 || y < 5 || y >= 30 ? [255, 255, 255] : [200, 20, 20])),
    );
    expect(await sizeOf(await made(framed, "trim=border,f=png"))).toBe("40x25");
    expect(await sizeOf(await made(framed, "trim.border.keep=2,f=png"))).toBe("44x29");
    expect(await sizeOf(await made(framed, "trim.left=10;,f=png".replace(";", "")))).toBe("50x40");
    expect(await sizeOf(await made(framed, "trim.width=20,trim.height=10,trim.left=5,f=png"))).toBe("20x10");
    const palette = await sharp(framed).png({ palette: true }).toBuffer();
    expect(await sizeOf(await made(palette, "w=30,blur=2,saturation=2,background=red"))).toBe("30x20");
    const grey = await sharp(framed).toColourspace("b-w").png().toBuffer();
    expect(
      await sizeOf(await made(grey, "w=30,blur=2,saturation=2,brightness=1.1,fit=pad,h=40,background=red")),
    ).toBe("30x40");
  });

  it("flip comes before rotate", async () => {
    const bytes = await made(await pngOf(fourColors(40, 40)), "flip=h,rotate=90,f=png");
    const { at } = await raster(bytes);
    // red green / blue yellow → green red / yellow blue → yellow green / blue red
    expect(colorDistance(at(5, 5), quadrants[3]!)).toBe(0);
    expect(colorDistance(at(35, 5), quadrants[1]!)).toBe(0);
    expect(colorDistance(at(5, 35), quadrants[2]!)).toBe(0);
  });
});

describe("where a crop lies", () => {
  it.each([
    ["0x0", [0, 0]],
    ["1x1", [3, 3]],
    [".5x.5", [0, 3]],
    ["left", [0, 2]],
    ["right", [1, 3]],
    ["top", [0, 1]],
    ["bottom", [2, 3]],
  ] as const)("gravity %s", async (gravity, [first, last]) => {
    const isTall = gravity === "left" || gravity === "right";
    const isWide = gravity === "top" || gravity === "bottom";
    const source = await pngOf(fourColors(200, 200));
    const point = gravity.includes("x") && gravity !== ".5x.5";
    const trimmed = point ? `trim=0;0;0;0,` : "";
    const box = isTall ? "w=40,h=100" : isWide ? "w=100,h=40" : "w=100,h=100";
    // A crop can move in one direction; a second crop allows the other.
    const bytes = await made(source, `${trimmed}${box},fit=cover,gravity=${gravity},f=png`);
    const { width, height, at } = await raster(bytes);
    if (isTall || isWide) {
      expect(colorDistance(at(2, 2), quadrants[first]!)).toBeLessThan(30);
      expect(colorDistance(at(width - 3, height - 3), quadrants[last]!)).toBeLessThan(30);
    } else expect([width, height]).toEqual([100, 100]);
  });

  it.each([
    ["auto", 600, 200, 480, 100],
    ["auto", 200, 600, 100, 120],
    ["auto", 400, 400, 320, 80],
    ["entropy", 600, 200, 480, 100],
    ["entropy", 200, 600, 100, 120],
  ])("%s keeps the salient object of %i × %i", async (gravity, width, height, x, y) => {
    const disc = (px: number, py: number) => (px - x) ** 2 + (py - y) ** 2 < 1600;
    const source = await pngOf(
      painted(width, height, (px, py) => (disc(px, py) ? [250, 40 + ((px * py) % 40), 20] : [120, 125, 120])),
    );
    const id = await platform.store(source);
    for (const size of width === height ? ["w=200,h=80"] : ["w=100,h=100", "w=50,h=50"]) {
      const { bytes } = await platform.deliver(id, `${size},fit=cover,gravity=${gravity},f=png`);
      const { data, channels } = await raster(bytes);
      let red = 0;
      for (let at = 0; at < data.length; at += channels) if (data[at]! > 200) red += 1;
      const share = Math.min(width, height) / (width === height ? 200 : 100);
      // Nearly the whole disc is in the crop.
      expect(red / ((Math.PI * 1600) / (size.includes("=50") ? 4 * share ** 2 : share ** 2))).toBeGreaterThan(
        0.85,
      );
    }
    if (gravity === "entropy") return;
    await expect
      .poll(async () => (await platform.services.images.stored.find(platform.ready.account_id, id)).focus)
      .toMatchObject({
        x: expect.closeTo(x / width, 1) as number,
        y: expect.closeTo(y / height, 1) as number,
      });
  });

  it("face without a detector works as if no face was found", async () => {
    const source = await pngOf(scenery(300, 100));
    const id = await platform.store(source);
    const { status, bytes } = await platform.deliver(id, "w=50,h=50,fit=cover,gravity=face,zoom=0.5,f=png");
    expect([status, await sizeOf(bytes)]).toEqual([200, "50x50"]);
    expect((await platform.deliver(id, "w=50,h=50,fit=cover,gravity=face,zoom=1.5")).status).toBe(400);
  });
});

it.each([
  ["jpeg", 0.97],
  ["webp", 0.97],
  ["avif", 0.96],
] as const)("%s at quality 80 looks like the original", async (format, least) => {
  const source = await pngOf(scenery(640, 480));
  const [lossy, exact] = [await made(source, `w=320,q=80,f=${format}`), await made(source, "w=320,f=png")];
  expect(await ssim(lossy, exact)).toBeGreaterThan(least);
  expect(lossy.length).toBeLessThan(exact.length);
});

it("the examples of the public documentation", async () => {
  const source = await jpegOf(fourColors(1080, 720));
  const id = await platform.store(source);
  const size = async (options: string) => sizeOf((await platform.deliver(id, `${options},f=jpeg`)).bytes);
  expect(await size("fit=scale-down,w=2000,h=2000")).toBe("1080x720");
  expect(await size("fit=scale-down,w=500,h=500")).toBe("500x333");
  expect(await size("fit=cover,w=500,h=500")).toBe("500x500");
  expect(await size("fit=crop,w=1296,h=1296")).toBe("1080x720");
  expect(await size("fit=pad,w=1080,h=1080")).toBe("1080x1080");
  expect(await size("fit=squeeze,w=1080,h=540")).toBe("1080x540");
  const odd = await platform.store(await jpegOf(fourColors(612, 613)));
  const oddSize = async (options: string) => sizeOf((await platform.deliver(odd, `${options},f=jpeg`)).bytes);
  expect(await oddSize("fit=aspect-crop,w=1920,h=1120")).toBe("612x357");
  expect(await oddSize("fit=crop,w=1920,h=1120")).toBe("612x613");
});
