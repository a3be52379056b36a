const mask = 0xffff_ffff_ffff_ffffn;
const rotate = (value: bigint, bits: bigint): bigint => ((value << bits) | (value >> (64n - bits))) & mask;

/** SipHash-2-4 of `data` with a 16-byte key. Returns 8 bytes in the order of RFC 9018. */
export function sipHash24(key: Buffer, data: Buffer): Buffer {
  const k0 = key.readBigUInt64LE(0);
  const k1 = key.readBigUInt64LE(8);
  let v0 = k0 ^ 0x736f_6d65_7073_6575n;
  let v1 = k1 ^ 0x646f_7261_6e64_6f6dn;
  let v2 = k0 ^ 0x6c79_6765_6e65_7261n;
  let v3 = k1 ^ 0x7465_6462_7974_6573n;
  const round = (): void => {
    v0 = (v0 + v1) & mask;
    v1 = rotate(v1, 13n) ^ v0;
    v0 = rotate(v0, 32n);
    v2 = (v2 + v3) & mask;
    v3 = rotate(v3, 16n) ^ v2;
    v0 = (v0 + v3) & mask;
    v3 = rotate(v3, 21n) ^ v0;
    v2 = (v2 + v1) & mask;
    v1 = rotate(v1, 17n) ^ v2;
    v2 = rotate(v2, 32n);
  };
  const absorb = (word: bigint): void => {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  };
  const whole = data.length - (data.length % 8);
  for (let at = 0; at < whole; at += 8) absorb(data.readBigUInt64LE(at));
  let last = BigInt(data.length & 0xff) << 56n;
  for (let at = whole; at < data.length; at++) last |= BigInt(data[at]!) << BigInt((at - whole) * 8);
  absorb(last);
  v2 ^= 0xffn;
  for (let count = 0; count < 4; count++) round();
  const hash = Buffer.alloc(8);
  hash.writeBigUInt64LE(v0 ^ v1 ^ v2 ^ v3);
  return hash;
}
