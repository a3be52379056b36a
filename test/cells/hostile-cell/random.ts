/** A generator of numbers below a bound (mulberry32). */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
export type Random = ReturnType<typeof random>;
export const oneOf = <T>(next: Random, list: readonly T[]): T => list[next(list.length)]!;

export const deep = "[".repeat(2000) + "]".repeat(2000);
export const texts = [
  "",
  "x",
  "\n",
  "\r\n",
  "\0",
  "\ud800",
  "é",
  "%",
  "%ff",
  "%ED%A0%80",
  "null",
  "[]",
  "{}",
  "-1",
  "1e999",
  "NaN",
  "undefined",
  "__proto__",
  "constructor",
  "../..",
  "/script/",
  "https://a.example/",
  "body 1",
  "body NaN",
  "answer {}",
  "answer %7B%7D",
  '{"status":200,"statusText":"","headers":[]}',
  '{"script":"a","limits":{"cpuMs":"x"}}',
  deep,
  "x".repeat(20_000),
];
/** A JSON value, mostly of the wrong type. */
export const value = (next: Random): unknown =>
  oneOf<unknown>(next, [
    oneOf(next, texts),
    next(1000),
    -1,
    0.5,
    null,
    true,
    [],
    {},
    [1, "a"],
    { run: 1 },
    ["a", "b"],
    ["a"],
  ]);
