import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";
import { isIP } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AddressPolicy } from "../../../edge/origin/address-policy.ts";
import { peerTls } from "../../../edge/origin-client/peer-tls.ts";
import { addressesOf, type LookUp } from "../../../edge/origin/resolve.ts";
import { readUpTo } from "../../../platform/util/read-up-to.ts";

/** A request to a destination. */
export interface Outgoing {
  method: "PUT" | "POST";
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: { sizeBytes: number; open: () => Readable };
}

export interface DestinationResponse {
  status: number;
  /** The beginning of the body. */
  text: string;
}

/** An upload failed. The message is for the job's owner: it has no addresses, paths or secrets. */
export class UploadFault extends Error {}

export interface SenderOptions {
  policy: AddressPolicy;
  lookUp: LookUp;
  timeoutMs: number;
  /** CA certificates in PEM; by default those of Node. */
  ca: readonly string[] | undefined;
  localAddress: string | undefined;
}

/** Maximum size of a response that is read. */
const responseBytesMax = 16 * 1024;

/**
 * Sends requests to destinations, which may be slow, hostile or broken: only to addresses that scripts may
 * fetch, with a time limit, without following redirects, and reading only the beginning of the response.
 */
export class LogSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Rejects with UploadFault. */
  async send(outgoing: Outgoing, signal?: AbortSignal): Promise<DestinationResponse> {
    const timeout = AbortSignal.timeout(this.#options.timeoutMs);
    const ended = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
    let failure: unknown;
    try {
      for (const address of await this.#addresses(outgoing.url)) {
        try {
          return await this.#sendTo(address, outgoing, ended);
        } catch (error) {
          failure = error;
          if ((error as NodeJS.ErrnoException).syscall !== "connect") break;
        }
      }
    } catch (error) {
      failure = error;
    }
    if (failure instanceof UploadFault) throw failure;
    throw new UploadFault(
      timeout.aborted ? `no answer within ${this.#options.timeoutMs / 1000} seconds` : reasonOf(failure),
    );
  }

  /** The allowed addresses of a host. Connections go to exactly these. */
  async #addresses(url: URL): Promise<string[]> {
    const { protocol, port } = url;
    const found = await addressesOf(hostOf(url), undefined, this.#options.lookUp).catch(() => {
      throw new UploadFault("the name of its host has no address");
    });
    const portNumber = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
    const allowed = found.filter(
      (address) => this.#options.policy.check(address, portNumber, "script") === "allowed",
    );
    if (allowed.length === 0)
      throw new UploadFault(
        "connections of this installation to its address are not allowed (--private-networks)",
      );
    return allowed;
  }

  async #sendTo(address: string, outgoing: Outgoing, signal: AbortSignal): Promise<DestinationResponse> {
    const { url, method, headers, body } = outgoing;
    const isTls = url.protocol === "https:";
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { ca, localAddress } = this.#options;
    const request = (isTls ? requestTls : requestPlain)({
      host: address,
      port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
      method,
      path: url.pathname + url.search,
      headers: { host: url.host, "user-agent": "selvedge", ...headers, "content-length": body.sizeBytes },
      agent: false,
      signal,
      ...(localAddress === undefined ? {} : { localAddress }),
      ...(isTls
        ? { ...peerTls, servername: isIP(hostOf(url)) === 0 ? url.hostname : "", ...(ca && { ca: [...ca] }) }
        : {}),
    });
    request.on("response", resolve).on("error", reject);
    const content = body.open();
    // A destination may respond before it has read everything.
    const sent = pipeline(content, request).catch(reject);
    try {
      const response = await promise;
      const text = await readUpTo(response, responseBytesMax).then(
        (bytes) => bytes.toString("latin1"),
        () => "",
      );
      return { status: response.statusCode ?? 0, text };
    } finally {
      request.on("error", () => {}).destroy();
      content.destroy();
      await sent;
    }
  }
}

/** An IPv6 address stands in brackets in a URL only. */
const hostOf = ({ hostname }: URL): string => (hostname.startsWith("[") ? hostname.slice(1, -1) : hostname);

/** Reasons by the codes of Node's errors. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refused the connection",
  ECONNRESET: "it ended the connection",
  EPIPE: "it ended the connection",
  EHOSTUNREACH: "it cannot be reached",
  ENETUNREACH: "it cannot be reached",
  ETIMEDOUT: "it cannot be reached",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted",
};

function reasonOf(error: unknown): string {
  const { code = "", name = "" } = (error ?? {}) as { code?: string; name?: string };
  if (name === "AbortError") return "the upload was stopped";
  if (code.startsWith("HPE_")) return "its answer is not HTTP";
  return reasons[code] ?? "the connection failed";
}
