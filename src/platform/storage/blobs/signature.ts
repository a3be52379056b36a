import { createHmac, hash } from "node:crypto";

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** The session token of temporary credentials. */
  sessionToken?: string | undefined;
}

/** A request before it is signed. All of its headers are signed. */
export interface UnsignedRequest {
  method: string;
  /** Encoded as sent, with a leading slash. */
  path: string;
  query: Readonly<Record<string, string>>;
  /** Names in lower case, including `host`. */
  headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body in hex. */
  payloadSha256: string;
}

/** The digest in hex. */
export const sha256 = (data: string | Uint8Array): string => hash("sha256", data, "hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Encodes as Signature Version 4 requires: everything except letters, digits and `-._~`. */
export const encodeName = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Encodes each part of a path as Signature Version 4 requires. */
export const encodePath = (path: string): string => path.split("/").map(encodeName).join("/");

/** The query in the order for signing, which can also be sent. */
export const canonicalQuery = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${encodeName(name)}=${encodeName(value)}`)
    .toSorted()
    .join("&");

/** Signs requests with AWS Signature Version 4. Derives the key of each day once. */
export class RequestSigner {
  readonly #credentials: Credentials;
  readonly #region: string;
  readonly #service: string;
  #day = "";
  #key: Buffer = Buffer.alloc(0);

  constructor(credentials: Credentials, region: string, service = "s3") {
    this.#credentials = credentials;
    this.#region = region;
    this.#service = service;
  }

  /** The headers to send: those of the request, and those of the signature. */
  sign(request: UnsignedRequest, now: Date): Record<string, string> {
    const { accessKeyId, sessionToken } = this.#credentials;
    const time = now.toISOString().replaceAll(/[:-]|\.\d+/g, "");
    const day = time.slice(0, 8);
    const headers: Record<string, string> = {
      ...request.headers,
      "x-amz-content-sha256": request.payloadSha256,
      "x-amz-date": time,
      ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken }),
    };
    const names = Object.keys(headers).toSorted();
    const signedHeaders = names.join(";");
    const canonical = [
      request.method,
      request.path,
      canonicalQuery(request.query),
      ...names.map((name) => `${name}:${headers[name]!.trim().replaceAll(/ +/g, " ")}`),
      "",
      signedHeaders,
      request.payloadSha256,
    ].join("\n");
    const scope = `${day}/${this.#region}/${this.#service}/aws4_request`;
    const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`;
    const signature = hmac(this.#keyOf(day), text).toString("hex");
    headers["authorization"] =
      `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${signedHeaders},Signature=${signature}`;
    return headers;
  }

  #keyOf(day: string): Buffer {
    if (day !== this.#day) {
      const dayKey = hmac(`AWS4${this.#credentials.secretAccessKey}`, day);
      this.#key = [this.#region, this.#service, "aws4_request"].reduce(hmac, dayKey);
      this.#day = day;
    }
    return this.#key;
  }
}
