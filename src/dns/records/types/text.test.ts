import { fc } from "../../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { TXT, textChunks, textLength } from "./text.ts";

const strings = (content: string): string[] =>
  textChunks(TXT.parse({ content }).content).map((chunk) => Buffer.from(chunk).toString("latin1"));

describe("the strings of a TXT record", () => {
  it("have at most 255 bytes", () => {
    expect(strings("x".repeat(600)).map((each) => each.length)).toEqual([255, 255, 90]);
    expect(strings("x".repeat(255)).map((each) => each.length)).toEqual([255]);
    expect(strings(`"${"ü".repeat(200)}"`).map((each) => each.length)).toEqual([255, 145]);
  });

  it("keep the division by quotes, and resolve escapes", () => {
    expect(strings('"a" "" "b"')).toEqual(["a", "", "b"]);
    expect(strings(String.raw`"a\"b\\c\065\255"`)).toEqual(['a"b\\cA\u00ff']);
    expect(strings(String.raw`v=DKIM1\; k=rsa`)).toEqual(["v=DKIM1; k=rsa"]);
    expect(strings('{"a":1}')).toEqual(['{"a":1}']);
  });

  it("are counted in characters, with an escape as one", () => {
    expect(textLength(String.raw`"ab\010\"" "🧥"`)).toBe(5);
    expect(TXT.parse({ content: "x".repeat(2048) }).content).toHaveLength(2050);
  });
});

it("stores any accepted text in a form that stays unchanged when it is parsed again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (content) => {
      let kept: string;
      try {
        kept = TXT.parse({ content }).content;
      } catch {
        return;
      }
      expect(TXT.parse({ content: kept }).content).toBe(kept);
      if (!/["\\]/.test(content)) {
        expect(Buffer.concat(textChunks(kept)).toString("utf8")).toBe(content.trim());
      }
    }),
  );
});
