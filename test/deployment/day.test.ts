import { afterAll, beforeAll, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startS3, type S3Double } from "../helpers/s3.ts";
import { operatorsDay } from "./day.ts";

let postgres: TestPostgres;
let s3: S3Double & { url: string };
beforeAll(async () => {
  [postgres, s3] = await Promise.all([startPostgres(), startS3()]);
});
afterAll(async () => Promise.all([postgres.stop(), s3.stop()]));

/** `node test/proofs/operators-day.ts` does the same with the npm package, and upgrades to another version. */
it("an operator who follows docs/deployment.md gets two nodes, survives the loss of one, restores and upgrades", async () => {
  const seen = await operatorsDay({ postgres, s3, programs: { clone: true } });
  expect(seen.blocks).toBeGreaterThan(12);
  expect(seen.images).toEqual({ second: [200, true], elsewhere: [200, true] });
  expect(seen.zones).toEqual({ second: 1, elsewhere: 1 });
});
