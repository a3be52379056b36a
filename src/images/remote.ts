import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { callbackify } from "node:util";
import type { AddressPolicy } from "../edge/address-policy.ts";
import { imageErrors } from "./errors.ts";

const redirectsMax = 5;
const connectTimeoutMs = 10_000;
const totalTimeoutMs = 30_000;

/**
 * Fetches an image that an upload names by its URL. Every address is checked at the moment of connecting to it, and with
 * every redirect again: a name that changes its mind leads nowhere else.
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
      });
      const { statusCode, headers, body } = answer;
      if (statusCode >= 300 && statusCode < 400 && headers["location"] !== undefined) {
        await body.dump();
        if (redirects === redirectsMax) throw failed(`it redirects more than ${redirectsMax} times`);
        url = parse(new URL(String(headers["location"]), url).href);
        continue;
      }
      if (statusCode !== 200) {
        await body.dump();
        throw failed(`its server answered with status ${statusCode}`);
      }
      return await take(body as AsyncIterable<Uint8Array>, filenameOf(url));
    }
  } catch (error) {
    throw asFault(error);
  } finally {
    await agent.destroy();
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
    throw failed(`${url.hostname} leads to an address that may not be connected to`);
}

/** Resolves a name for the connection that is about to be made, and lets through only what may be connected to. */
const checkedLookup = (policy: AddressPolicy, port: () => number) =>
  callbackify(async (host: string, _options: unknown): Promise<LookupAddress[]> => {
    const found = await lookup(host, { all: true }).catch(() => {
      throw failed(`${host} has no address`);
    });
    const allowed = found.filter(({ address }) => policy.check(address, port(), "script") === "allowed");
    if (allowed.length === 0) throw failed(`${host} leads to an address that may not be connected to`);
    return allowed;
  });

const filenameOf = (url: URL): string => unescaped(url.pathname.split("/").at(-1) ?? "");

/** As it is where a % escapes nothing. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function asFault(error: unknown): unknown {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: unknown };
  if (name === "ApiError" || (error as { status?: number }).status !== undefined) return error;
  if ((cause as { status?: number } | undefined)?.status !== undefined) return cause;
  if (name === "TimeoutError") return failed(`it took longer than ${totalTimeoutMs / 1000} seconds`);
  if (code === "UND_ERR_CONNECT_TIMEOUT") return failed("its server does not accept a connection");
  if (typeof code === "string") return failed(`the connection failed (${code})`);
  return error;
}
