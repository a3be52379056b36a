import type { Random } from "../../name-server/random.ts";

/** Bytes with a meaning in several protocols: lengths, terminators, signs. */
const boundaryBytes = [0, 1, 2, 9, 10, 13, 22, 32, 58, 63, 127, 128, 0xc0, 0xed, 254, 255];

export const randomBytes = (random: Random, count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, () => random.below(256)));

/** Changes, drops, duplicates or inserts a few bytes. */
export function spoiled(random: Random, bytes: Buffer): Buffer {
  let result = Buffer.from(bytes);
  for (let count = random.below(4); count >= 0 && result.length > 0; count--) {
    const at = random.below(result.length);
    const [before, after] = [result.subarray(0, at), result.subarray(at)];
    switch (random.below(5)) {
      case 0:
        result[at] = random.below(256);
        break;
      case 1:
        result[at] = random.pick(boundaryBytes);
        break;
      case 2:
        result = Buffer.concat([before, after.subarray(random.below(8))]);
        break;
      case 3:
        result = Buffer.concat([before, randomBytes(random, random.below(20)), after]);
        break;
      default:
        result = Buffer.concat([before, after.subarray(0, 40), after]);
    }
  }
  return result;
}
