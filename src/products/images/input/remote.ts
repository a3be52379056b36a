import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { callbackify } from "node:util";
import type { AddressPolicy } from "../../../edge/origin/address-policy.ts";
import { DomainError } from "../../../platform/domain-error.ts";
import { imageErrors } from "../errors.ts";

const redirectsMax = 5;
const connectTimeoutMs = 10_000;
const totalTimeoutMs = 30_000;

/**
 * Fetches the image at the URL of an upload. Addresses are checked when the connection is made, also after
 * each redirect, so a name whose address changes cannot bypass the check.
 */
export async function fetchRemote<T>(
  address: string,
  policy: AddressPolicy,
  take: (body: AsyncIterable<Uint8Array>, filename: string) => Promise<T>,
): Promise<T> {
  const { Agent, request } = await import("undici");
  const signal = AbortSignal.timeout(totalTimeoutMs);
  let url = parse(address);
  const agent = new Agent({
    connect: { timeout: connectTimeoutMs, lookup: checkedLookup(policy, () => portOf(url)) },
  });
  try {
    for (let redirects = 0; ; redirects++) {
      if (isIP(bare(url.hostname)) !== 0) check(policy, bare(url.hostname), portOf(url), url);
      const credentials = `${unescaped(url.username)}:${unescaped(url.password)}`;
      const authorization =
        url.username === "" ? {} : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
      const answer = await request(`${url.origin}${url.pathname}${url.search}`, {
        dispatcher: agent,
        signal,
        headers: { accept: "image/*", "user-agent": "Selvedge", ...authorization },
      }).catch((error: unknown) => {
        throw asFault(error);
      });
      const { statusCode, headers, body } = answer;
      if (statusCode >= 300 && statusCode < 400 && headers["location"] !== undefined) {
        await body.dump();
        if (redirects === redirectsMax) throw failed(`it redirects more than ${redirectsMax} times`);
        const location = String(headers["location"]);
        if (!URL.canParse(location, url.href)) throw failed("it redirects to an invalid URL");
        url = parse(new URL(location, url).href);
        continue;
      }
      if (statusCode !== 200) {
        await body.dump();
        throw failed(`its server answered with status ${statusCode}`);
      }
      return await take(received(body as AsyncIterable<Uint8Array>), filenameOf(url));
    }
  } finally {
    await agent.destroy();
  }
}

/** Wraps errors of the connection, so that they differ from errors of the code that consumes the body. */
async function* received(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body;
  } catch (error) {
    throw asFault(error);
  }
}

const failed = (why: string): Error =>
  imageErrors.invalidUpload(`The image at url could not be fetched: ${why}`, "/body/url");

function parse(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw imageErrors.invalidUpload("Expected an http or https address for url", "/body/url");
}

const bare = (host: string): string => (host.startsWith("[") ? host.slice(1, -1) : host);
const portOf = (url: URL): number => Number(url.port || (url.protocol === "https:" ? 443 : 80));

function check(policy: AddressPolicy, address: string, port: number, url: URL): void {
  if (policy.check(address, port, "script") !== "allowed")
    throw failed(`connections to the address of ${url.hostname} are not allowed`);
}

/** Resolves a name for the connection and returns only allowed addresses. */
const checkedLookup = (policy: AddressPolicy, port: () => number) =>
  callbackify(async (host: string, _options: unknown): Promise<LookupAddress[]> => {
    const found = await lookup(host, { all: true }).catch(() => {
      throw failed(`${host} has no address`);
    });
    const allowed = found.filter(({ address }) => policy.check(address, port(), "script") === "allowed");
    if (allowed.length === 0) throw failed(`connections to the address of ${host} are not allowed`);
    return allowed;
  });

const filenameOf = (url: URL): string => unescaped(url.pathname.split("/").at(-1) ?? "");

/** Decodes percent escapes; returns the text unchanged when one is invalid. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const connectionFaults: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: "its server does not accept a connection",
  ECONNREFUSED: "its server refuses the connection",
  ECONNRESET: "its server closed the connection",
  UND_ERR_SOCKET: "its server closed the connection",
  EHOSTUNREACH: "there is no route to its server",
  ENETUNREACH: "there is no route to its server",
};

function asFault(error: unknown): unknown {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: unknown };
  if (error instanceof DomainError) return error;
  if (cause instanceof DomainError) return cause;
  if (name === "TimeoutError") return failed(`it took longer than ${totalTimeoutMs / 1000} seconds`);
  return typeof code === "string"
    ? failed(connectionFaults[code] ?? "the connection to its server failed")
    : error;
}
