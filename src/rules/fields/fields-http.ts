import type { FieldGroup } from "./field-definition.ts";

/** Fields from the request line and the headers. */
export const httpFields: readonly FieldGroup[] = [
  ["Bytes", "http.cookie http.host http.referer http.user_agent http.x_forwarded_for"],
  ["Bytes", "http.request.method http.request.version http.request.full_uri http.request.uri"],
  ["Bytes", "http.request.uri.path http.request.uri.path.extension http.request.uri.query"],
  ["Int", "http.request.timestamp.sec http.request.timestamp.msec"],
  ["Map(Array(Bytes))", "http.request.cookies http.request.headers http.request.uri.args"],
  ["Array(Bytes)", "http.request.headers.names http.request.headers.values http.request.accepted_languages"],
  ["Array(Bytes)", "http.request.uri.args.names http.request.uri.args.values"],
  ["Bool", "http.request.headers.truncated ssl"],
];

/** Fields from the body, if the edge has read it. */
export const bodyFields: readonly FieldGroup[] = [
  ["Bytes", "http.request.body.raw http.request.body.mime"],
  ["Bool", "http.request.body.truncated"],
  ["Int", "http.request.body.size"],
  ["Map(Array(Bytes))", "http.request.body.form http.request.body.multipart"],
  [
    "Array(Bytes)",
    "http.request.body.form.names http.request.body.form.values http.request.body.multipart.values",
  ],
  ["Array(Array(Bytes))", "http.request.body.multipart.names http.request.body.multipart.content_types"],
  [
    "Array(Array(Bytes))",
    "http.request.body.multipart.content_dispositions http.request.body.multipart.filenames",
  ],
  ["Array(Array(Bytes))", "http.request.body.multipart.content_transfer_encodings"],
];

const textClaims = ["aud", "iss", "jti", "sub"].map((claim) => `http.request.jwt.claims.${claim}`);
const timeClaims = ["iat.sec", "nbf.sec"].map((claim) => `http.request.jwt.claims.${claim}`);

/** Claims of validated JWTs. */
export const jwtFields: readonly FieldGroup[] = [
  ["Map(Array(Bytes))", textClaims.join(" ")],
  ["Map(Array(Int))", timeClaims.join(" ")],
  ["Array(Bytes)", [...textClaims, ...timeClaims].map((claim) => `${claim}.names`).join(" ")],
  ["Array(Bytes)", textClaims.map((claim) => `${claim}.values`).join(" ")],
  ["Array(Int)", timeClaims.map((claim) => `${claim}.values`).join(" ")],
];

/** The original request, before any changes by rules. */
export const rawFields: readonly FieldGroup[] = [
  ["Bytes", "raw.http.request.full_uri raw.http.request.uri raw.http.request.uri.path"],
  ["Bytes", "raw.http.request.uri.path.extension raw.http.request.uri.query"],
  ["Map(Array(Bytes))", "raw.http.request.uri.args"],
  ["Array(Bytes)", "raw.http.request.uri.args.names raw.http.request.uri.args.values"],
];
