import { afterAll, beforeAll, expect, it } from "vitest";
import { tryAll } from "./damage.ts";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** A few hundred damaged files; test/proofs/images-fuzz.ts tries ten thousand. */
let platform: ImagePlatform;
beforeAll(async () => {
  platform = await startImagePlatform({ imageAcceptAvif: true, imageAcceptSvg: true });
});
afterAll(() => platform.close(1000));

it("damaged files are refused, or shown up to the damage", async () => {
  const { faults, refused, undecodable, pictures } = await tryAll(platform, 0, 240);
  expect(faults).toEqual([]);
  expect([refused > 20, undecodable > 20, pictures > 20]).toEqual([true, true, true]);
});
