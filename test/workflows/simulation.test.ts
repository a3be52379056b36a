import { it } from "vitest";
import { simulateSeeds } from "./simulate.ts";

it("every invariant holds for 200 seeds of crashes, late messages, clock jumps and failing commits", async () => {
  await simulateSeeds(1, 200);
}, 240_000);

it("a wait that is said twice, and then is over, has one outcome", async () => {
  await simulateSeeds(3642, 1); // it had two
});
