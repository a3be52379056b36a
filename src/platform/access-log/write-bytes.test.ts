import { expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { keepingLast, writeLatin1, writeNumber } from "./write-bytes.ts";

const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });
const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(0, -0, 9, 10, 2 ** 31),
);

it("writes texts and numbers, and names the missing room", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(latin1, number)), fc.nat(200), (values, room) => {
      const write = (value: string | number, bytes: Buffer, at: number): number =>
        typeof value === "string" ? writeLatin1(value, bytes, at) : writeNumber(value, bytes, at);
      const expected = values.join("");
      const bytes = Buffer.alloc(room);
      let at = 0;
      for (const value of values) at = write(value, bytes, at);
      expect(at).toBe(expected.length);
      if (at <= room) expect(bytes.toString("latin1", 0, at)).toBe(expected);
    }),
  );
});

it("writes kept bytes as it would write their value", () => {
  const write = keepingLast<string>((value, bytes, at) => writeLatin1(`<${value}>`, bytes, at));
  const values = fc.array(fc.constantFrom("", "a", "b", "c".repeat(30), "d".repeat(2000)));
  fc.assert(
    fc.property(values, fc.nat(3000), (given, room) => {
      const bytes = Buffer.alloc(room);
      const expected = given.map((value) => `<${value}>`).join("");
      let at = 0;
      for (const value of given) at = write(value, bytes, at);
      expect(at).toBe(expected.length);
      if (at <= room) expect(bytes.toString("latin1", 0, at)).toBe(expected);
    }),
  );
});
