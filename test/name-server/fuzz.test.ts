import { expect, it } from "vitest";
import { Mutations } from "./mutations.ts";
import { Random } from "./random.ts";

/** test/proofs/dns-fuzz.ts sends a million packets. */
it("20,000 mutated packets cause no harm, with or without a response", () => {
  const mutations = new Mutations(new Random(8));
  mutations.run(20_000);
  const { outcome } = mutations;
  expect(outcome.faults).toEqual([]);
  expect(outcome.answered).toBeGreaterThan(5000);
  expect(Object.keys(outcome.byRcode)).toEqual(expect.arrayContaining(["0", "1", "4", "5", "9"]));
});
