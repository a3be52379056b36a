import { expect, it } from "vitest";
import { parseBlobUrl } from "./blob-url.ts";

it("parses buckets, with a prefix, an endpoint and a region", () => {
  expect(parseBlobUrl("files")).toEqual({ kind: "files" });
  expect(parseBlobUrl("postgres")).toEqual({ kind: "postgres" });
  const plain = { kind: "s3", bucket: "our.bytes", prefix: "", endpoint: undefined, region: undefined };
  expect(parseBlobUrl("s3://our.bytes")).toEqual(plain);
  expect(parseBlobUrl("s3://our.bytes/a/b/?endpoint=http://127.0.0.1:9000/&region=eu-west-1")).toEqual({
    ...plain,
    prefix: "a/b/",
    endpoint: "http://127.0.0.1:9000",
    region: "eu-west-1",
  });
});

it.each([
  ["folder", "files, postgres or s3://"],
  ["http://bucket", "files, postgres or s3://"],
  ["s3://", "bucket"],
  ["s3://B_", "bucket"],
  ["s3://bucket:90", "bucket"],
  ["s3://bucket/a b", "prefix"],
  ["s3://bucket/a//b", "prefix"],
  ["s3://key:secret@bucket", "no credentials"],
  ["s3://bucket?host=x", "not host"],
  ["s3://bucket?endpoint=ftp://x", "endpoint"],
  ["s3://bucket?endpoint=http://x/path", "endpoint"],
  ["s3://bucket?region=", "region"],
])("rejects %s, and does not repeat it", (text, message) => {
  expect(() => parseBlobUrl(text)).toThrow(message);
  expect(() => parseBlobUrl(text)).not.toThrow("secret@");
});
