import { createHmac, timingSafeEqual } from "node:crypto";

/** The address to which a relay forwards a request. */
export interface RelayTarget {
  address: string;
  port: number;
  tls: { servername: string; isVerified: boolean } | undefined;
}

const validSeconds = 60;

const macOf = (secret: string, text: string): Buffer => createHmac("sha256", secret).update(text).digest();

/** Signs a target and the time with the secret of the nodes, as one header value. */
export function signTarget(target: RelayTarget, secret: string, nowMs: number): string {
  const { address, port, tls } = target;
  const fields = [
    Math.floor(nowMs / 1000),
    address,
    port,
    tls === undefined ? "http" : tls.isVerified ? "strict" : "full",
    tls?.servername ?? "",
  ];
  const text = fields.join(",");
  return `${text},${macOf(secret, text).toString("base64url")}`;
}

/** The target of a token; undefined for an invalid signature or an old token. */
export function readTarget(token: string, secret: string, nowMs: number): RelayTarget | undefined {
  const cut = token.lastIndexOf(",");
  const text = token.slice(0, Math.max(cut, 0));
  const given = Buffer.from(token.slice(cut + 1), "base64url");
  const expected = macOf(secret, text);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  const [seconds, address = "", port, mode, servername = ""] = text.split(",");
  if (Math.abs(Math.floor(nowMs / 1000) - Number(seconds)) > validSeconds) return undefined;
  const tls = mode === "http" ? undefined : { servername, isVerified: mode === "strict" };
  return { address, port: Number(port), tls };
}
