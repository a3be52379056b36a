import { setTimeout as delay } from "node:timers/promises";
import type { Readable } from "node:stream";
import type { Dispatcher, Pool } from "undici";
import { readUpTo } from "../../util/read-up-to.ts";
import { BlobsUnavailable } from "../faults.ts";
import { fixedCredentials, type CredentialsSource } from "./credentials.ts";
import { canonicalQuery, encodePath, sha256, RequestSigner, type Credentials } from "./signature.ts";
import { s3FaultOf, S3Fault } from "./s3-xml.ts";

export interface S3Options {
  /** Scheme, host and port. */
  endpoint: string;
  bucket: string;
  /** Whether the bucket is the first part of the path, instead of the host. */
  isInPath: boolean;
  region: string;
  credentials: Credentials | CredentialsSource;
}

export interface S3Call {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Undefined for a call about the bucket. */
  key?: string;
  query?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
  body?: S3Body | undefined;
}
export interface S3Body {
  sizeBytes: number;
  sha256: string;
  /** Called for each attempt. */
  open(): Readable | Uint8Array;
}

export interface S3Response {
  status: number;
  headers: Readonly<Record<string, string>>;
}

const retriesMax = 4;
const backoffMs = { first: 50, max: 2000 };
/** After this time a call is not repeated. */
const repeatingMs = 20_000;
const connectTimeoutMs = 5000;
const silenceMs = 15_000;
/** Limit of responses that are read as text. A list has at most 1000 keys of 1024 bytes. */
const textBytesMax = 4 * 1024 * 1024;
/** Error codes for credentials that have expired or were replaced. */
const renewableCodes: ReadonlySet<string> = new Set([
  "AccessDenied",
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidToken",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
]);
const emptySha256 = sha256("");

/** Signed calls to one bucket, with retries. They reject with `BlobsUnavailable` for temporary faults, or `S3Fault`. */
export class S3Client {
  readonly #options: S3Options;
  readonly #credentials: CredentialsSource;
  #signer: { credentials: Credentials; signer: RequestSigner } | undefined;
  readonly #host: string;
  #pool: Promise<Pool> | undefined;
  /** How far the store's clock is ahead of this machine's, in milliseconds. */
  #skewMs = 0;

  constructor(options: S3Options) {
    this.#options = options;
    const { credentials } = options;
    this.#credentials = "current" in credentials ? credentials : fixedCredentials(credentials);
    const { host } = new URL(options.endpoint);
    this.#host = options.isInPath ? host : `${options.bucket}.${host}`;
  }

  /** The store's time, according to its responses. */
  now(): number {
    return Date.now() + this.#skewMs;
  }

  /** A call whose whole response is read as text. */
  async text(call: S3Call): Promise<S3Response & { text: string }> {
    return this.#repeated(async () => {
      const { body, ...answer } = await this.#send(call);
      const text = (await readUpTo(body, textBytesMax)).toString();
      const fault = s3FaultOf(answer.status, text);
      if (fault !== undefined) throw this.#noticed(fault, answer);
      return { ...answer, text };
    });
  }

  /** A call whose response is content. The caller reads the body, which can break off. */
  async open(call: S3Call): Promise<S3Response & { body: Readable }> {
    return this.#repeated(async () => {
      const answer = await this.#send(call);
      if (answer.status < 300) return answer;
      const text = (await readUpTo(answer.body, textBytesMax)).toString();
      throw this.#noticed(s3FaultOf(answer.status, text) ?? new S3Fault(answer.status, ""), answer);
    });
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy();
  }

  /** Reads the credentials again. */
  async renew(): Promise<void> {
    await this.#credentials.renew();
  }

  async #signerNow(): Promise<RequestSigner> {
    const credentials = await this.#credentials.current();
    if (this.#signer?.credentials !== credentials)
      this.#signer = { credentials, signer: new RequestSigner(credentials, this.#options.region) };
    return this.#signer.signer;
  }

  /** Whether a call was refused because of its credentials, and reading them again gave new ones. */
  async #isRenewed(error: unknown): Promise<boolean> {
    if (!(error instanceof S3Fault) || !isOfCredentials(error)) return false;
    return this.#credentials.renew().catch(() => false);
  }

  async #repeated<T>(attempt: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let hasRenewed = false;
    for (let retries = 0; ; retries++) {
      try {
        return await attempt();
      } catch (error) {
        if (error instanceof S3Fault && !error.isTemporary) {
          if (hasRenewed || !(await this.#isRenewed(error))) throw error;
          hasRenewed = true;
        }
        if (retries === retriesMax || performance.now() - startedAt > repeatingMs)
          throw new BlobsUnavailable(error);
      }
      // Full jitter, so that nodes that failed together do not retry together.
      await delay(Math.random() * Math.min(backoffMs.max, backoffMs.first * 2 ** retries));
    }
  }

  async #send(call: S3Call): Promise<S3Response & { body: Readable }> {
    const { method, key = "", query = {}, headers = {}, body } = call;
    const { bucket, isInPath } = this.#options;
    const path = encodePath(isInPath ? `/${bucket}/${key}` : `/${key}`);
    const payloadSha256 = body?.sha256 ?? emptySha256;
    const signer = await this.#signerNow();
    const signed = signer.sign(
      { method, path, query, payloadSha256, headers: { ...headers, host: this.#host } },
      new Date(this.now()),
    );
    if (body !== undefined) signed["content-length"] = String(body.sizeBytes);
    const text = canonicalQuery(query);
    const pool = await (this.#pool ??= this.#connect());
    const answer = await pool.request({
      method,
      path: text === "" ? path : `${path}?${text}`,
      headers: signed,
      ...(body === undefined ? {} : { body: body.open() }),
    });
    return { status: answer.statusCode, headers: headersOf(answer), body: answer.body };
  }

  /** Learns the store's clock from a response that rejects this machine's time. */
  #noticed(fault: S3Fault, { headers }: S3Response): S3Fault {
    const date = Date.parse(headers["date"] ?? "");
    if (fault.code === "RequestTimeTooSkewed" && !Number.isNaN(date)) this.#skewMs = date - Date.now();
    return fault;
  }

  async #connect(): Promise<Pool> {
    const undici = await import("undici"); // loaded only by nodes that use it
    const { protocol } = new URL(this.#options.endpoint);
    return new undici.Pool(`${protocol}//${this.#host}`, {
      connections: 64,
      connect: { timeout: connectTimeoutMs },
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    });
  }
}

/** A response to HEAD has no body, and so no error code. */
const isOfCredentials = ({ status, code }: S3Fault): boolean =>
  renewableCodes.has(code) || (code === "" && (status === 400 || status === 403));

function headersOf({ headers }: Dispatcher.ResponseData): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) found[name] = String(value);
  return found;
}
