import { expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { jsonBytes } from "./worker/json-bytes.ts";

it("counts the bytes of any text's JSON", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), (units) => {
      const text = String.fromCharCode(...units);
      expect(jsonBytes(text)).toBe(Buffer.byteLength(JSON.stringify(text)) - 2);
    }),
  );
  for (const text of ['\u0000\n"\\', "é€😀", "\ud800x", "\udc00\ud800"])
    expect(jsonBytes(text)).toBe(Buffer.byteLength(JSON.stringify(text)) - 2);
});
