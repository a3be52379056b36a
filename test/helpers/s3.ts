import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { errorReply, S3Buckets, type Reply } from "./s3-buckets.ts";

export const s3Credentials = { accessKeyId: "AKTEST", secretAccessKey: "secret of the double" };

/**
 * A fault of a call in place of its answer. `lost`: the call has its effect, and its connection ends
 * without an answer. `cut`: half of the answer's body. `error200`: status 200 with an error document.
 */
export type S3FaultKind = "slowDown" | "lost" | "reset" | "cut" | "error200" | "conflict";
export interface S3Call {
  method: string;
  key: string;
  query: URLSearchParams;
}

/** An S3 server in memory that verifies signatures, digests and preconditions, and makes faults on request. */
export class S3Double {
  readonly buckets = new S3Buckets();
  /** Every call that was answered, in order, as "METHOD key?query". */
  readonly calls: string[] = [];
  /** How far its clock is ahead. */
  skewMs = 0;
  /** The only credentials that it accepts. */
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } = s3Credentials;
  /** Asked for each call: how long it waits, and which fault it gets. `fail` takes precedence. */
  disturb: (call: S3Call) => { delayMs?: number; fault?: S3FaultKind } = () => ({});
  readonly #faults: { kind: S3FaultKind; applies: (call: S3Call) => boolean }[] = [];
  #server: Server | undefined;
  #port = 0;

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Connections are refused until the next `start`; objects stay. */
  async stop(): Promise<void> {
    const server = this.#server!;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The next call that applies gets the fault. */
  fail(kind: S3FaultKind, applies: (call: S3Call) => boolean = () => true, times = 1): void {
    for (let i = 0; i < times; i++) this.#faults.push({ kind, applies });
  }

  get faultsLeft(): number {
    return this.#faults.length;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, "http://double");
    const [, bucket = "", ...rest] = decodeURIComponent(url.pathname).split("/");
    const call: S3Call = { method: request.method!, key: rest.join("/"), query: url.searchParams };
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    this.calls.push(`${call.method} ${call.key}${url.search}`);
    const at = this.#faults.findIndex(({ applies }) => applies(call));
    const disturbance = this.disturb(call);
    if (disturbance.delayMs !== undefined) await delay(disturbance.delayMs);
    const fault = at < 0 ? disturbance.fault : this.#faults.splice(at, 1)[0]!.kind;
    if (fault === "reset") return void request.socket.resetAndDestroy();
    if (fault === "slowDown") return send(response, request, errorReply(503, "SlowDown"));
    if (fault === "conflict") return send(response, request, errorReply(409, "ConditionalRequestConflict"));
    if (fault === "error200") return send(response, request, errorReply(200, "InternalError"));
    const reply =
      this.#refusal(request, url, body) ?? this.buckets.answer(bucket, call, request.headers, body);
    if (fault === "lost") return void request.socket.resetAndDestroy();
    if (fault === "cut" && reply.body !== undefined) {
      response.writeHead(reply.status, { ...reply.headers, "content-length": reply.body.length });
      response.write(reply.body.subarray(0, reply.body.length >> 1), () => response.destroy());
      return;
    }
    response.setHeader("date", new Date(Date.now() + this.skewMs).toUTCString());
    send(response, request, reply);
  }

  /** The error for a call with a wrong signature, time or digest. */
  #refusal(request: IncomingMessage, url: URL, body: Buffer): Reply | undefined {
    const { headers } = request;
    const [, accessKeyId, day, region, signedHeaders, signature] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([\w-]+)\/s3\/aws4_request, ?SignedHeaders=([\w;-]+), ?Signature=([\da-f]{64})$/.exec(
        headers.authorization ?? "",
      ) ?? [];
    if (signature === undefined) return errorReply(403, "AccessDenied");
    if (accessKeyId !== this.credentials.accessKeyId) return errorReply(403, "InvalidAccessKeyId");
    if (headers["x-amz-security-token"] !== this.credentials.sessionToken)
      return errorReply(400, "ExpiredToken");
    const names = signedHeaders!.split(";");
    const needed = Object.keys(headers).filter((name) => name === "host" || name.startsWith("x-amz-"));
    if (needed.some((name) => !names.includes(name))) return errorReply(403, "AccessDenied");
    const time = String(headers["x-amz-date"]);
    const sentOn = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
    if (!time.startsWith(day!) || !(Math.abs(sentOn - Date.now() - this.skewMs) < 15 * 60_000))
      return errorReply(403, "RequestTimeTooSkewed");
    const payload = String(headers["x-amz-content-sha256"]);
    const query = url.search.slice(1).split("&").filter(Boolean).toSorted().join("&");
    const lines = names.map((name) => `${name}:${String(headers[name]).trim()}\n`).join("");
    const canonical = `${request.method}\n${url.pathname}\n${query}\n${lines}\n${signedHeaders}\n${payload}`;
    const scope = `${day}/${region}/s3/aws4_request`;
    const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`;
    const key = [day!, region!, "s3", "aws4_request"].reduce<string | Buffer>(
      (secret, part) => createHmac("sha256", secret).update(part).digest(),
      `AWS4${this.credentials.secretAccessKey}`,
    );
    if (createHmac("sha256", key).update(text).digest("hex") !== signature)
      return errorReply(403, "SignatureDoesNotMatch");
    return sha256(body) === payload ? undefined : errorReply(400, "XAmzContentSHA256Mismatch");
  }
}

/** Starts a double with one bucket. */
export async function startS3(bucket = "bucket"): Promise<S3Double & { url: string }> {
  const double = new S3Double();
  double.buckets.create(bucket);
  await double.start();
  return Object.assign(double, { url: `s3://${bucket}?endpoint=${encodeURIComponent(double.endpoint)}` });
}

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");

function send(response: ServerResponse, request: IncomingMessage, { status, headers, body }: Reply): void {
  const length = headers["content-length"] ?? String(body?.length ?? 0);
  response.writeHead(status, { ...headers, "content-length": length });
  response.end(request.method === "HEAD" ? undefined : body);
}
