import { describe, expect, it } from "vitest";
import { recordTypeNames, recordTypes, type RecordTypeName } from "./record-types.ts";
import { canonical } from "./testing.ts";
import type { RecordValue } from "./type.ts";

const kept = ({ content, priority }: RecordValue, type: RecordTypeName): string =>
  priority === undefined || type === "HTTPS" || type === "SVCB" ? content : `${priority} ${content}`;

describe.each(canonical)("%s %j", (type, written, expected) => {
  const value = recordTypes[type].parse({ content: written });

  it(`is stored as ${expected}`, () => {
    expect(kept(value, type)).toBe(expected);
  });

  it("is unchanged when its stored content or its data is parsed again", () => {
    expect(recordTypes[type].parse({ content: expected })).toEqual(value);
    expect(recordTypes[type].parse({ content: value.content, priority: value.priority })).toEqual(value);
    if (value.data !== undefined) {
      expect(recordTypes[type].parse({ data: value.data, priority: value.priority })).toEqual(value);
    }
  });
});

it("covers every type", () => {
  expect(new Set(canonical.map(([type]) => type))).toEqual(new Set(recordTypeNames));
  expect(canonical.length).toBeGreaterThanOrEqual(75);
});
