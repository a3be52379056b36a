import { fc } from "../../../../test/helpers/properties.ts";
import sharp from "sharp";
import { expect, it } from "vitest";
import { seeds } from "../../../../test/images/damage.ts";
import { DomainError } from "../../../platform/domain-error.ts";
import { parseColor } from "../recipe/color.ts";
import { cropBox, layout } from "../recipe/geometry.ts";
import { fits, parseOptions, parseTransform } from "../recipe/options.ts";
import { probeBytes } from "./probe.ts";

it("reads the same properties from headers as libvips finds by decoding", async () => {
  for (const bytes of await seeds()) {
    const found = await probeBytes(bytes);
    const wanted = await sharp(bytes).metadata();
    expect(found).toMatchObject({
      format: wanted.format === "heif" ? "avif" : wanted.format,
      width: wanted.width,
      height: wanted.pageHeight ?? wanted.height,
      orientation: wanted.orientation ?? 1,
      frames: wanted.pages ?? 1,
      isProgressive: wanted.format === "jpeg" && wanted.isProgressive,
    });
    // For these formats, transparency is only visible in the pixels, or unknown.
    if (wanted.format !== "gif" && wanted.format !== "svg") expect(found.hasAlpha).toBe(wanted.hasAlpha);
  }
});

it("fails on arbitrary bytes only with a message about them", async () => {
  const whole = await seeds();
  await fc.assert(
    fc.asyncProperty(
      fc.nat(whole.length - 1),
      fc.nat(),
      fc.uint8Array({ maxLength: 40 }),
      async (index, at, put) => {
        const bytes = Buffer.from(whole[index]!);
        bytes.set(put.subarray(0, Math.max(0, bytes.length - (at % bytes.length))), at % bytes.length);
        await probeBytes(bytes).catch((error: unknown) => {
          if (!(error instanceof DomainError && error.kind === "images.invalidFormat")) throw error;
        });
      },
    ),
    { numRuns: 500 },
  );
});

it("parses or refuses any text as options", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "w",
      "width",
      "fit",
      "gravity",
      "trim.left",
      "trim",
      "border.color",
      "f",
      "=",
      ",",
      "%2C",
      "%",
      "0x1",
      "cover",
      "12",
    ),
    fc.string({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      try {
        parseOptions(pieces.join(""));
      } catch (error) {
        if (!(error instanceof DomainError && error.kind === "images.invalidTransform")) throw error;
      }
    }),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(fc.anything(), (value) => {
      try {
        parseTransform(value);
      } catch (error) {
        if (!(error instanceof DomainError && error.kind === "images.invalidTransform")) throw error;
      }
    }),
  );
});

it("every layout respects its fit, and every crop lies inside the image", () => {
  const side = fc.integer({ min: 1, max: 3000 });
  const fraction = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.record({ width: side, height: side }),
      fc.record({ width: side, height: side }),
      fc.constantFrom(...fits),
      fraction,
      fraction,
      fc.constantFrom("remainder" as const, "box-center" as const),
      (source, box, fit, x, y, mode) => {
        const { scaled, crop, output } = layout(source, box, fit);
        if (fit === "cover" || fit === "pad" || fit === "squeeze") expect(output).toEqual(box);
        if (fit !== "scale-up") {
          expect(output.width).toBeLessThanOrEqual(Math.max(box.width, 1));
          expect(output.height).toBeLessThanOrEqual(Math.max(box.height, 1));
        }
        if (fit === "scale-down" || fit === "crop" || fit === "aspect-crop") {
          expect(scaled.width).toBeLessThanOrEqual(source.width);
          expect(scaled.height).toBeLessThanOrEqual(source.height);
        }
        if (fit === "scale-up") expect(output.width).toBeGreaterThanOrEqual(source.width);
        if (crop === undefined) return;
        const { left, top, width, height } = cropBox(scaled, crop, { x, y, mode }, undefined);
        expect(left >= 0 && top >= 0 && left + width <= scaled.width && top + height <= scaled.height).toBe(
          true,
        );
      },
    ),
    { numRuns: 3000 },
  );
});

it.each([
  ["red", [255, 0, 0, 1]],
  ["RebeccaPurple", [102, 51, 153, 1]],
  ["#0f08", [0, 255, 0, 136 / 255]],
  ["#12345678", [18, 52, 86, 120 / 255]],
  ["rgb(1, 2, 3)", [1, 2, 3, 1]],
  ["rgba(1 2 3 / 50%)", [1, 2, 3, 0.5]],
  ["rgb(100% 0% 50%)", [255, 0, 128, 1]],
  ["hsl(120, 100%, 25%)", [0, 128, 0, 1]],
  ["hsl(120deg 100% 25% / .25)", [0, 128, 0, 0.25]],
  ["transparent", [0, 0, 0, 0]],
  ["hwb(90 10% 10%)", [128, 230, 26, 1]],
  ["lab(50% 40 59)", [191, 87, 2, 1]],
  ["rgb(none 2 300)", [0, 2, 255, 1]],
])("%s is a colour", (text, [r, g, b, alpha]) => {
  expect(parseColor(text)).toEqual({ r, g, b, alpha: expect.closeTo(alpha!, 3) as number });
});
it.each([
  "",
  "reddish",
  "#12",
  "#12345",
  "rgb(1,2)",
  "rgb(a,b,c)",
  "hsl(x,1%,1%)",
  "url(x)",
  "fff",
  "constructor",
])("%j is not a colour", (text) => {
  expect(parseColor(text)).toBeUndefined();
});
