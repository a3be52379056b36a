import { expect, it } from "vitest";
import { chosen } from "./compress.ts";

it.each([
  [undefined, undefined],
  ["", undefined],
  ["identity", undefined],
  ["deflate", undefined],
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip, br", "br"],
  ["GZIP;q=1.0, br;q=0.5", "gzip"],
  ["br;q=0, zstd;q=0, gzip;q=0.1", "gzip"],
  ["*", "zstd"],
  ["*;q=0.5, gzip", "gzip"],
  ["zstd;q=0, *", "br"],
  ["gzip;q=0.5, identity;q=1", undefined],
  ["gzip;q=2", undefined],
  ["gzip;q=x", undefined],
])("accept-encoding %j chooses %j", (header, coding) => {
  expect(chosen(header)).toBe(coding);
});
