import { createHash } from "node:crypto";
import { imageErrors } from "./errors.ts";
import type { ListCursor } from "./store.ts";

/**
 * An opaque token for a list position. Its tag detects mistakes, such as a token of another account. It is no
 * protection: a caller who may list may start at any position.
 */
export function formatCursor({ uploadedOn, id }: ListCursor, accountId: string): string {
  const text = JSON.stringify([uploadedOn, id]);
  return `${Buffer.from(text).toString("base64url")}.${tag(text, accountId)}`;
}

export function parseCursor(token: string, accountId: string): ListCursor {
  const [encoded = "", given] = token.split(".");
  const text = Buffer.from(encoded, "base64url").toString();
  if (given !== tag(text, accountId))
    throw imageErrors.invalidUpload(
      "Expected a continuation_token that a list of this account returned",
      "/query/continuation_token",
    );
  const [uploadedOn, id] = JSON.parse(text) as [number, string];
  return { uploadedOn, id };
}

const tag = (text: string, accountId: string): string =>
  createHash("sha256").update(`${accountId}\n${text}`).digest("base64url").slice(0, 16);
