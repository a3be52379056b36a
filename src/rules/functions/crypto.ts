import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Value } from "../values/types.ts";
import type { FunctionDefinition, FunctionParameter } from "./definition.ts";
import { urlDecode } from "./url.ts";

const bytes: FunctionParameter = { types: ["Bytes"] };

function flagsParameter(allowed: string): FunctionParameter {
  const pattern = new RegExp(`^[${allowed}]*$`);
  return {
    types: ["Bytes"],
    kind: "Literal",
    check: (value) => (pattern.test(value as string) ? undefined : `flags must be made of "${allowed}"`),
  };
}

export const cryptoFunctions: readonly FunctionDefinition[] = [
  {
    name: "sha256",
    parameters: [bytes],
    returns: "Bytes",
    call: ([text]) =>
      createHash("sha256")
        .update(text as string, "latin1")
        .digest("latin1"),
  },
  {
    name: "encode_base64",
    parameters: [bytes, flagsParameter("up")],
    optional: 1,
    returns: "Bytes",
    call: ([text, flags]) => {
      const buffer = Buffer.from(text as string, "latin1");
      const options = (flags ?? "") as string;
      const url = buffer.toString("base64url");
      const padding = options.includes("p") ? "=".repeat((4 - (url.length % 4)) % 4) : "";
      return (options.includes("u") ? url : buffer.toString("base64").replace(/(?<!=)=+$/, "")) + padding;
    },
  },
  {
    name: "decode_base64",
    parameters: [{ types: ["Bytes"], kind: "Field" }],
    returns: "Bytes",
    call: ([text]) => {
      const source = text as string;
      if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(source)) return undefined;
      return Buffer.from(source, "base64").toString("latin1");
    },
  },
  {
    name: "uuidv4",
    parameters: [bytes],
    returns: "Bytes",
    call: ([seed]) => {
      const hash = createHash("sha256")
        .update(seed as string, "latin1")
        .digest();
      const raw = (seed as string).length >= 16 ? Buffer.from((seed as string).slice(0, 16), "latin1") : hash;
      raw[6] = (raw[6]! & 0x0f) | 0x40;
      raw[8] = (raw[8]! & 0x3f) | 0x80;
      return raw.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    },
  },
  {
    name: "is_timed_hmac_valid_v0",
    parameters: [
      { types: ["Bytes"], kind: "Literal" },
      { types: ["Bytes"] },
      { types: ["Int"], kind: "Literal" },
      { types: ["Int"] },
      {
        types: ["Int"],
        kind: "Literal",
        check: (value) =>
          (value as number) >= 0 ? undefined : "the length of the separator must not be negative",
      },
      flagsParameter("s"),
    ],
    optional: 2,
    returns: "Bool",
    call: (args) => isTimedHmacValid(args),
  },
];

/** `message separator timestamp - mac`, where the mac is HMAC-SHA256 of message and timestamp. */
function isTimedHmacValid([key, messageMac, ttl, now, separatorLength, flags]: readonly (
  | Value
  | undefined
)[]): boolean {
  const match = /^(.+)(\d{10})-([^]{43,})$/s.exec(messageMac as string);
  if (match === null) return false;
  const [, prefix, timestamp, encoded] = match as unknown as [string, string, string, string];
  const messageLength = prefix.length - Number(separatorLength ?? 0);
  if (messageLength < 1) return false;
  const mac = macOf(encoded, flags === "s");
  const expected = createHmac("sha256", Buffer.from(key as string, "latin1"))
    .update(prefix.slice(0, messageLength) + timestamp, "latin1")
    .digest();
  if (mac?.length !== expected.length || !timingSafeEqual(mac, expected)) return false;
  return BigInt(timestamp) + BigInt(ttl as number) >= BigInt(now as number);
}

/**
 * Decodes a MAC. Only its canonical encoding is accepted, so that a changed character never yields the same
 * token.
 */
function macOf(encoded: string, urlSafe: boolean): Buffer | undefined {
  const text = urlSafe ? encoded : encoded.replace(/%[0-9A-Fa-f]{2}/g, (escape) => urlDecode(escape));
  const mac = Buffer.from(text, urlSafe ? "base64url" : "base64");
  const canonical = mac.toString(urlSafe ? "base64url" : "base64");
  return canonical === text || canonical.replace(/(?<!=)=+$/, "") === text ? mac : undefined;
}
