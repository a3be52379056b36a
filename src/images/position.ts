import { createHash } from "node:crypto";
import { imageErrors } from "./errors.ts";
import type { Position } from "./store.ts";

/**
 * A place in a list as a text that means nothing to its holder. Its tag finds mistakes, such as the token of another
 * account; it protects nothing, as whoever may list may list from anywhere.
 */
export function formatPosition({ uploadedOn, id }: Position, accountId: string): string {
  const text = JSON.stringify([uploadedOn, id]);
  return `${Buffer.from(text).toString("base64url")}.${tag(text, accountId)}`;
}

export function parsePosition(token: string, accountId: string): Position {
  const [encoded = "", given] = token.split(".");
  const text = Buffer.from(encoded, "base64url").toString();
  if (given !== tag(text, accountId))
    throw imageErrors.invalidUpload(
      "Expected a continuation_token that a list of this account has given out",
      "/query/continuation_token",
    );
  const [uploadedOn, id] = JSON.parse(text) as [number, string];
  return { uploadedOn, id };
}

const tag = (text: string, accountId: string): string =>
  createHash("sha256").update(`${accountId}\n${text}`).digest("base64url").slice(0, 16);
