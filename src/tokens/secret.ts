import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** A new secret: 40 characters, 240 bits. */
export const newSecret = (): string => randomBytes(30).toString("base64url");

/** What could be an API token at all; anything else is a malformed header rather than an unknown token. */
export const isSecretShaped = (text: string): boolean => /^[\w.~+/=-]{1,256}$/.test(text);

/** Secrets are stored only like this. They have full entropy, so one keyed hash is enough; `pepper` is the installation's. */
export const hashSecret = (secret: string, pepper: string): string =>
  createHmac("sha256", pepper).update(secret).digest("hex");

export const sameHash = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
};
