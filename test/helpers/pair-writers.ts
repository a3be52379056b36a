import type { Call } from "./writes.ts";

const largeBytes = 200 * 1024;

export interface PairWriters {
  /** The last number that each writer had acknowledged. */
  acknowledged(): number[];
  /** Ends the writing. Returns the last number that each writer sent. */
  stop(): Promise<number[]>;
}

/**
 * Writers that count up. Each writes a pair of small values in one transaction; every fifth also replaces a
 * large value, whose old bytes are then deleted.
 */
export function startPairWriters(call: Call, values: string, count: number): PairWriters {
  const acknowledged = Array.from({ length: count }, () => 0);
  let isStopping = false;
  const writing = acknowledged.map(async (_, writer) => {
    for (let n = 1; ; n++) {
      const pair = ["a", "b"].map((side) => ({ key: `${side}-${writer}`, value: String(n) }));
      const { status, text } = await call("PUT", `${values}/bulk`, pair);
      if (status !== 200) throw new Error(`a write was answered with ${status}: ${text}`);
      acknowledged[writer] = n;
      if (writer % 5 === 0)
        await call("PUT", `${values}/values/large-${writer}`, Buffer.alloc(largeBytes, `${n} `));
      if (isStopping) return n;
    }
  });
  return {
    acknowledged: () => [...acknowledged],
    async stop() {
      isStopping = true;
      return Promise.all(writing);
    },
  };
}

/**
 * The numbers that a platform holds. Throws if a pair was torn, or if a large value is missing or has wrong
 * bytes.
 */
export async function numbersOf(call: Call, values: string, count: number): Promise<number[]> {
  const numbers: number[] = [];
  for (let writer = 0; writer < count; writer++) {
    const [a, b] = await Promise.all(
      ["a", "b"].map(async (side) => call("GET", `${values}/values/${side}-${writer}`)),
    );
    if (a!.text !== b!.text) throw new Error(`writer ${writer}: ${a!.text} and ${b!.text} are one write`);
    numbers.push(a!.status === 404 ? 0 : Number(a!.text));
    if (writer % 5 !== 0) continue;
    const { status, text } = await call("GET", `${values}/values/large-${writer}`);
    const [n] = text.split(" ");
    if (status === 404 && numbers[writer]! <= 1) continue;
    if (status !== 200 || text !== Buffer.alloc(largeBytes, `${n} `).toString())
      throw new Error(
        `writer ${writer}: the large value is answered with ${status} and ${text.slice(0, 20)}`,
      );
  }
  return numbers;
}
