import { describe, expect, it } from "vitest";
import { fc } from "../../../../test/helpers/properties.ts";
import { DestinationFault, locationOf, readDestination, shownDestination } from "./destination.ts";

const keys = "access-key-id=marked-id&secret-access-key=marked-secret";

describe("shows no credentials", () => {
  it.each([
    [
      `s3://bucket/a?region=x&${keys}`,
      "s3://bucket/a?region=x&access-key-id=REDACTED&secret-access-key=REDACTED",
    ],
    [
      "https://h.example/a?header_Authorization=marked&t=marked",
      "https://h.example/a?header_Authorization=REDACTED&t=REDACTED",
    ],
    ["https://marked:marked@h.example/a#marked", "https://h.example/a"],
    ["HTTPS://h.example/?region=marked", "HTTPS://h.example/?region=REDACTED"],
    [
      "s3://bucket?region=x?marked=1&secret-access-key=marked",
      "s3://bucket?region=x?marked=1&secret-access-key=REDACTED",
    ],
    [
      `s3://bucket?endpoint=https://:marked@h.example:9000&${keys}`,
      "s3://bucket?endpoint=REDACTED&access-key-id=REDACTED&secret-access-key=REDACTED",
    ],
    [
      `s3://bucket?endpoint=https%3A%2F%2F%3Amarked%40h.example&${keys}`,
      "s3://bucket?endpoint=REDACTED&access-key-id=REDACTED&secret-access-key=REDACTED",
    ],
    [
      `s3://bucket?endpoint=http%3A%2F%2F[::1]:9000&${keys}`,
      "s3://bucket?endpoint=http%3A%2F%2F[::1]:9000&access-key-id=REDACTED&secret-access-key=REDACTED",
    ],
    ["https://h.example/a?header_A=x&marked", "https://h.example/a?header_A=REDACTED&REDACTED"],
  ])("of %s", (text, shown) => {
    expect(shownDestination(text)).toBe(shown);
  });

  it("of any text, in the result and in faults", () => {
    const part = fc.constantFrom(
      "s3://",
      "https://",
      "b",
      "/",
      "?",
      "&",
      "=",
      "#",
      "header_A",
      "secret-access-key",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const text = `${parts.join("")}?secret-access-key=marked&header_X=marked`;
        expect(shownDestination(text)).not.toContain("marked");
        try {
          readDestination(text);
        } catch (error) {
          expect(error).toBeInstanceOf(DestinationFault);
          expect((error as Error).message).not.toContain("marked");
        }
      }),
    );
  });
});

it.each([
  ["s3://bucket/a/b/?region=eu-1", "https://bucket.s3.eu-1.amazonaws.com"],
  ["s3://dotted.bucket?region=eu-1", "https://s3.eu-1.amazonaws.com/dotted.bucket"],
  ["s3://bucket/a?endpoint=https%3A%2F%2Fs3.example%3A9000", "https://s3.example:9000/bucket"],
  ["s3://bucket/a?endpoint=s3.example", "https://s3.example/bucket"],
])("addresses %s at %s", (text, address) => {
  const found = readDestination(`${text}${text.includes("?") ? "&" : "?"}${keys}`);
  if (found.kind !== "s3") throw new Error("Expected a bucket");
  const { endpoint, bucket, isInPath } = found;
  expect(
    `${endpoint.protocol}//${isInPath ? `${endpoint.host}/${bucket}` : `${bucket}.${endpoint.host}`}`,
  ).toBe(address);
});

it.each([
  ["gs://bucket", /"gs", which is not supported/],
  ["r2://bucket", /"r2", which is not supported/],
  ["http://h.example", /"http", which is not supported/],
  ["bucket", /another text/],
  ["s3://UPPER/a?" + keys, /Expected s3:\/\/BUCKET/],
  [`s3://bucket/a/../b?${keys}`, /without empty parts, \. and \.\./],
  [`s3://bucket/%2e%2e/b?${keys}`, /without empty parts, \. and \.\./],
  [`s3://bucket/a?sse=aws:kms&${keys}`, /Expected AES256 for sse/],
  [`s3://bucket/a?region=../x&${keys}`, /name of a region/],
  [`s3://bucket/a?endpoint=https://h.example/path&${keys}`, /Expected a host/],
  [`s3://bucket/a?endpoint=https://:marked@h.example&${keys}`, /Expected a host/],
  [`s3://bucket/a?endpoint=https%3A%2F%2F%3Amarked%40h.example&${keys}`, /Expected a host/],
  ["https://user:word@h.example/", /Expected no user in the URL/],
  ["https://h.example/?header_Content-Length=1", /Expected another header/],
  ["https://h.example/?header_A=a%0d%0aB:%20b", /Expected a header's name and value/],
  ["https://", /Expected a complete URL/],
])("refuses %s", (text, message) => {
  expect(() => readDestination(text)).toThrow(message);
});

it("knows two destinations that write to one location", () => {
  const location = (text: string): string => locationOf(readDestination(text));
  expect(location(`s3://bucket/a?region=x&${keys}`)).toBe(location(`s3://bucket/a/?${keys}2&region=x`));
  expect(location("https://h.example/a?header_A=1")).toBe(location("https://h.example/a?header_A=2&b=1"));
  expect(location("https://h.example/a")).not.toBe(location("https://h.example/b"));
});
