/*
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104), because ids of objects are made synchronously, and workerd has only an
 * asynchronous form without nodejs_compat. Native functions are saved before the script's code is loaded.
 */
const [Words, Bytes, View] = [Uint32Array, Uint8Array, DataView];

const fraction = (x: number): number => Math.trunc((x - Math.floor(x)) * 2 ** 32) >>> 0;

/** The first 64 primes, of whose roots the constants are the fractions. */
function primes(): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < 64; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}
const constants = new Words(primes().map((prime) => fraction(Math.cbrt(prime))));
const start = new Words(
  primes()
    .slice(0, 8)
    .map((prime) => fraction(Math.sqrt(prime))),
);

const rotate = (x: number, n: number): number => (x >>> n) | (x << (32 - n));

function compress(state: Uint32Array, block: DataView, at: number, w: Uint32Array): void {
  for (let i = 0; i < 16; i++) w[i] = block.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [a, b] = [w[i - 15]!, w[i - 2]!];
    const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const t1 =
      h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants[i]! + w[i]!;
    const t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

export function sha256(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  const padded = new Bytes(Math.ceil((length + 9) / 64) * 64);
  padded.set(bytes);
  padded[length] = 0x80;
  const view = new View(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, (length << 3) >>> 0);
  const state = new Words(start);
  const w = new Words(64);
  for (let at = 0; at < padded.length; at += 64) compress(state, view, at, w);
  const out = new Bytes(32);
  const outView = new View(out.buffer);
  for (let i = 0; i < 8; i++) outView.setUint32(4 * i, state[i]!);
  return out;
}

/** `key` has at most 64 bytes. */
export function hmacSha256(key: Uint8Array, bytes: Uint8Array): Uint8Array {
  const inner = new Bytes(64 + bytes.length);
  const outer = new Bytes(64 + 32);
  for (let i = 0; i < 64; i++) {
    inner[i] = (key[i] ?? 0) ^ 0x36;
    outer[i] = (key[i] ?? 0) ^ 0x5c;
  }
  inner.set(bytes, 64);
  outer.set(sha256(inner), 64);
  return sha256(outer);
}
