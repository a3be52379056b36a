import { createPublicKey, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { types } from "../name-server/wire/constants.ts";
import { nameKey } from "../name-server/wire/name.ts";
import { Overloaded } from "../name-server/zone/signer.ts";
import { keyTagOf, newKey } from "./key.ts";
import { ZoneSigner } from "./zone-signer.ts";

const zone = "example.com";
const key = newKey();
const signer = (): ZoneSigner =>
  new ZoneSigner(zone, { ...key, keyTag: keyTagOf(key.publicKey), isLeaving: false, isMultiSigner: false });
const set = (...rdatas: string[]) => ({
  type: types.A,
  ttl: 300,
  rdatas: rdatas.map((each) => Buffer.from(each)),
});

describe("a signature", () => {
  it("covers the sorted set without duplicates, for the name without a wildcard's asterisk", () => {
    const owner = nameKey(`*.${zone}`);
    const rrsig = signer().signature(owner, set("bbbb", "aaaa", "bbbb")).set.rdatas[0]!;
    const fixed = rrsig.subarray(0, 18 + nameKey(zone).length);
    expect([fixed.readUInt16BE(0), fixed[2], fixed[3], fixed.readUInt32BE(4)]).toEqual([types.A, 13, 2, 300]);
    const record = (rdata: string): Buffer =>
      Buffer.concat([
        Buffer.from(owner, "latin1"),
        Buffer.from("000100010000012c0004", "hex"),
        Buffer.from(rdata),
      ]);
    const signed = Buffer.concat([fixed, record("aaaa"), record("bbbb")]);
    const point = Buffer.from(key.publicKey, "base64");
    const [x, y] = [point.subarray(0, 32), point.subarray(32)].map((half) => half.toString("base64url"));
    const publicKey = createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-256", x: x!, y: y! } });
    const signature = rrsig.subarray(fixed.length);
    expect(verify("sha256", signed, { key: publicKey, dsaEncoding: "ieee-p1363" }, signature)).toBe(true);
  });

  it("is made once for each set", () => {
    const one = signer();
    const [owner, first] = [nameKey(`a.${zone}`), set("aaaa")];
    expect(one.signature(owner, first)).toBe(one.signature(owner, first));
    expect(one.signature(owner, set("aaaa"))).not.toBe(one.signature(owner, first));
  });
});

it("the signatures of synthesized names are limited per second", () => {
  const one = signer();
  const deny = (index: number) => one.denial(nameKey(`n${index}.${zone}`), undefined, 60);
  const flood = (): void => {
    for (let index = 0; index < 100_000; index++) deny(index);
  };
  const known = deny(0);
  expect(flood).toThrow(Overloaded);
  expect(deny(0)).toBe(known);
});
