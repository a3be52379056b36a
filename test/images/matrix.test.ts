import { afterAll, beforeAll, expect, it } from "vitest";
import { check, combinations, sourceFormats, sourceImage } from "./matrix.ts";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** A tenth of the matrix; test/proofs/images-matrix.ts goes through all of it. */
let platform: ImagePlatform;
beforeAll(async () => {
  platform = await startImagePlatform();
});
afterAll(() => platform.close(1000));

it("fit and gravity work as documented with every format", async () => {
  const ids = new Map<string, string>();
  for (const format of sourceFormats) ids.set(format, await platform.store(await sourceImage(format)));
  const chosen = combinations().filter((_, i) => i % 11 === 0);
  const faults: string[] = [];
  for (const combination of chosen) {
    const fault = await check(platform, ids.get(combination.source)!, combination);
    if (fault !== undefined) faults.push(`${Object.values(combination).join(", ")}: ${fault}`);
  }
  expect(faults).toEqual([]);
  expect(chosen.length).toBeGreaterThan(60);
});
