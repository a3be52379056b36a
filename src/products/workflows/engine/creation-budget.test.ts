import { expect, it } from "vitest";
import type { SharedRates } from "../../../platform/storage/nodes/shared-rates.ts";
import type { Workflow } from "../workflow.ts";
import { CreationBudget } from "./creation-budget.ts";

const workflow = { id: "w", accountId: "a" } as Workflow;

/** Creates instances one by one until one is refused, and returns how many were created. */
async function spend(budget: CreationBudget): Promise<number> {
  for (let taken = 0; ; taken++)
    try {
      await budget.take(workflow, 1);
    } catch {
      return taken;
    }
}

it("a node of two creates half of a limit, and the rest once the other has created nothing", async () => {
  const corrections = new Map<string, (key: string, calls: number) => void>();
  const noted: [string, string, number][] = [];
  const rates: Pick<SharedRates, "share"> = {
    share(name, correct) {
      corrections.set(name, correct);
      return { weight: 2, note: (key, calls) => void noted.push([name, key, calls]) };
    },
  };
  // The rate is so low that no token is added during the test.
  const budget = new CreationBudget({ workflow: 10, account: 1000 }, rates);
  const first = await spend(budget);
  expect(first).toBeGreaterThanOrEqual(5);
  expect(first).toBeLessThan(8);
  expect(noted.slice(0, 2)).toEqual([
    ["workflow-creations", "w", 1],
    ["account-creations", "a", 1],
  ]);
  corrections.get("workflow-creations")!("w", -first);
  const second = await spend(budget);
  expect(second).toBeGreaterThanOrEqual(2);
  // Creations of the other node.
  corrections.get("workflow-creations")!("w", 100);
  expect(await spend(budget)).toBe(0);
});
