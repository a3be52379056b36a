import { createHmac, timingSafeEqual } from "node:crypto";
import type { SigningKey } from "../settings/settings.ts";

/** The signed text: the path, and the query without the signature. */
export function signedText(path: string, query: string): string {
  const rest = query
    .split("&")
    .filter((pair) => pair !== "" && !pair.startsWith("sig="))
    .join("&");
  return rest === "" ? path : `${path}?${rest}`;
}

export const sign = (key: string, text: string): string =>
  createHmac("sha256", key).update(text).digest("hex");

/** Verifies a signed URL against all valid keys. Returns its expiry in epoch seconds, or the fault. */
export function verify(
  paths: readonly string[],
  query: string,
  keys: readonly SigningKey[],
  nowSeconds: number,
): { expiresOn: number | undefined } | { fault: string } {
  const parameters = new URLSearchParams(query);
  const given = parameters.get("sig");
  if (given === null) return { fault: "it needs a signed URL" };
  const wanted = Buffer.from(given);
  const isSigned = paths.some((path) =>
    keys.some(({ value }) => {
      const expected = Buffer.from(sign(value, signedText(path, query)));
      return expected.length === wanted.length && timingSafeEqual(expected, wanted);
    }),
  );
  if (!isSigned) return { fault: "the signature is wrong" };
  const expiry = parameters.get("exp");
  if (expiry === null) return { expiresOn: undefined };
  if (!/^\d{1,12}$/.test(expiry)) return { fault: "exp is not a time in seconds" };
  return Number(expiry) > nowSeconds
    ? { expiresOn: Number(expiry) }
    : { fault: "the signed URL has expired" };
}
