import { expect, it } from "vitest";
import { mostSalient } from "./salience.ts";

const [width, height] = [64, 48];
type Color = [number, number, number, number];
const grey: Color = [128, 128, 128, 255];
const paint = (colorAt: (x: number, y: number) => Color): Uint8Array =>
  Uint8Array.from(
    { length: width * height * 4 },
    (_, i) => colorAt((i >> 2) % width, Math.floor((i >> 2) / width))[i & 3]!,
  );
const disc = (x: number, y: number, atX: number, atY: number, radius = 5): boolean =>
  (x - atX) ** 2 + (y - atY) ** 2 <= radius ** 2;
const focusOf = (colorAt: (x: number, y: number) => Color): [number, number] => {
  const { x, y } = mostSalient(paint(colorAt), width, height);
  return [Math.round(x * width), Math.round(y * height)];
};

it.each([
  [32, 24],
  [8, 8],
  [56, 40],
  [50, 10],
])("finds an object of another colour or brightness at %i, %i", (atX, atY) => {
  for (const color of [
    [200, 40, 40, 255],
    [250, 250, 250, 255],
    [90, 128, 160, 255],
  ] as Color[]) {
    const [x, y] = focusOf((px, py) => (disc(px, py, atX, atY) ? color : grey));
    expect(Math.abs(x - atX)).toBeLessThan(3);
    expect(Math.abs(y - atY)).toBeLessThan(3);
  }
});

it("finds the middle of a large object, and one of two objects rather than the space between them", () => {
  const [x] = focusOf((px, py) => (disc(px, py, 40, 24, 14) ? [220, 60, 20, 255] : grey));
  expect(Math.abs(x - 40)).toBeLessThan(8);
  const [one] = focusOf((px, py) =>
    disc(px, py, 10, 24) || disc(px, py, 54, 24) ? [220, 60, 20, 255] : grey,
  );
  expect(Math.min(Math.abs(one - 10), Math.abs(one - 54))).toBeLessThan(4);
});

it("does not mistake a background with two parts and a gradient for an object", () => {
  const background = (px: number, py: number): Color =>
    py < 24 ? [90, 140, 220 - px, 255] : [60, 150 - px, 60, 255];
  const [x, y] = focusOf((px, py) => (disc(px, py, 16, 30) ? [240, 230, 40, 255] : background(px, py)));
  expect(Math.abs(x - 16)).toBeLessThan(4);
  expect(Math.abs(y - 30)).toBeLessThan(4);
});

it("finds an object on a transparent background with any hidden colour", () => {
  const [x, y] = focusOf((px, py) => (disc(px, py, 12, 36) ? [255, 255, 255, 255] : [255, 255, 255, 0]));
  expect([Math.abs(x - 12) < 3, Math.abs(y - 36) < 3]).toEqual([true, true]);
});

it("is the centre when nothing stands out", () => {
  expect(
    mostSalient(
      paint(() => grey),
      width,
      height,
    ),
  ).toEqual({ x: 0.5, y: 0.5 });
  expect(mostSalient(Uint8Array.of(1, 2, 3, 255), 1, 1)).toEqual({ x: 0.5, y: 0.5 });
  const grain = (px: number, py: number): Color => [128 + ((px * 7 + py * 13) % 3), 128, 128, 255];
  expect(mostSalient(paint(grain), width, height)).toEqual({ x: 0.5, y: 0.5 });
});
