import type { FieldGroup } from "./field-definition.ts";

/** Fields of the origin's response. */
export const responseFields: readonly FieldGroup[] = [
  ["Int", "http.response.code cf.response.1xxx_code"],
  ["Bytes", "http.response.content_type.media_type cf.response.error_type"],
  ["Map(Array(Bytes))", "http.response.headers raw.http.response.headers"],
  ["Array(Bytes)", "http.response.headers.names http.response.headers.values"],
  ["Array(Bytes)", "raw.http.response.headers.names raw.http.response.headers.values"],
];
