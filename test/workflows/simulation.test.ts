import { it } from "vitest";
import { simulateSeeds } from "./simulate.ts";

it("all invariants hold for 200 seeds of crashes, late messages, clock jumps and failing commits", async () => {
  await simulateSeeds(1, 200);
}, 240_000);

it("a duplicate wait that then times out has one outcome", async () => {
  await simulateSeeds(3642, 1); // it had two
});
