import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** A new secret: 40 characters, 240 bits. */
export const newSecret = (): string => randomBytes(30).toString("base64url");

/**
 * Whether a text has the form of a token. Other text is reported as a malformed header, not as an unknown
 * token. The limit leaves room for the JWT of an upload session, which has a few thousand characters.
 */
export const isSecretShaped = (text: string): boolean => /^[\w.~+/=-]{1,8192}$/.test(text);

/**
 * The stored form of a secret. Secrets have full entropy, so one keyed hash is enough. `pepper` is the
 * installation's secret.
 */
export const hashSecret = (secret: string, pepper: string): string =>
  createHmac("sha256", pepper).update(secret).digest("hex");

/** Compares in constant time. */
export const sameHash = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
