/** Shifts of the four rounds (RFC 1321). */
const shifts = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const sines = Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0);
const blockBytes = 64;

/** The MD5 digest of a file in hexadecimal digits, which identifies an import. The file is read in chunks. */
export async function md5Of(file: Blob): Promise<string> {
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  let rest = new Uint8Array(0);
  for await (const piece of file.stream() as unknown as AsyncIterable<Uint8Array>) {
    const bytes = joined(rest, piece);
    const whole = bytes.length - (bytes.length % blockBytes);
    for (let at = 0; at < whole; at += blockBytes) mix(state, bytes, at);
    rest = bytes.slice(whole);
  }
  const end = new Uint8Array(rest.length < 56 ? 64 : 128);
  end.set(rest);
  end[rest.length] = 0x80;
  new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(file.size) * 8n, true);
  for (let at = 0; at < end.length; at += blockBytes) mix(state, end, at);
  return [...new Uint8Array(state.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

function mix(state: Int32Array, bytes: Uint8Array, at: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, blockBytes);
  let [a, b, c, d] = state as unknown as [number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const round = i >> 4;
    const [f, word] =
      round === 0
        ? [(b & c) | (~b & d), i]
        : round === 1
          ? [(d & b) | (~d & c), (5 * i + 1) % 16]
          : round === 2
            ? [b ^ c ^ d, (3 * i + 5) % 16]
            : [c ^ (b | ~d), (7 * i) % 16];
    const sum = (a + f + sines[i]! + view.getInt32(word * 4, true)) | 0;
    const shift = shifts[round * 4 + (i % 4)]!;
    [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
  }
  [a, b, c, d].forEach((value, i) => (state[i] = (state[i]! + value) | 0));
}
