import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { RateLimiter } from "../../../control/api/server/rate-limit.ts";
import { openStorage, type Storage } from "../storage.ts";
import { temporaryIdentity } from "./node-identity.ts";
import { NodeRegistry } from "./node-registry.ts";
import { SharedRates } from "./shared-rates.ts";

const logger = pino({ level: "silent" });
const limit = 100;
let postgres: TestPostgres;
let storage: Storage;
let registries: NodeRegistry[];
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

interface TestNode {
  rates: SharedRates;
  limiter: RateLimiter;
  node: { id: string; run: string; live: number };
  /** Calls until one is refused. */
  spend: (caller?: string) => number;
}
let time = 0;
async function startNode(live: number): Promise<TestNode> {
  const registry = new NodeRegistry(storage, temporaryIdentity(), "postgres", logger);
  await registry.start();
  registries.push(registry);
  const node = { id: registry.id, run: registry.run, live };
  const rates = new SharedRates(storage, node, logger);
  const limiter = new RateLimiter(limit, 60_000, () => time, rates);
  await rates.exchange();
  return {
    rates,
    limiter,
    node,
    spend(caller = "user") {
      for (let calls = 0; ; calls++) if (limiter.take(caller) > 0) return calls;
    },
  };
}
const exchange = async (...nodes: TestNode[]): Promise<void> => {
  for (const { rates } of nodes) await rates.exchange();
};

beforeEach(async () => {
  storage = await openStorage(await postgres.createMigrated());
  registries = [];
  return async () => {
    for (const each of registries) await each.stop();
    await storage.close();
  };
});

it("a node has its share of a limit at once, and nearly all of it when the others use nothing", async () => {
  const [first, second] = [await startNode(2), await startNode(2)];
  expect(first.spend()).toBe(limit / 2);
  let total = limit / 2;
  for (let seconds = 0; seconds < 8; seconds++) {
    await exchange(first, second);
    total += first.spend();
  }
  expect(total).toBeGreaterThan(limit - 3);
  expect(total).toBeLessThanOrEqual(limit);
  // The other node knows of these calls. Its first call of a window is always allowed.
  expect(second.spend()).toBeLessThanOrEqual(1);
});

it("all nodes together keep to a limit", async () => {
  const nodes = [await startNode(3), await startNode(3), await startNode(3)];
  let total = 0;
  for (let seconds = 0; seconds < 12; seconds++) {
    for (const node of nodes) if (node.limiter.take("user", 7) === 0) total += 7;
    await exchange(...nodes);
  }
  expect(total).toBeGreaterThan(limit * 0.7);
  expect(total).toBeLessThanOrEqual(limit);
  // Another caller, and the next window, are not concerned.
  expect(nodes[0]!.spend("other")).toBe(Math.floor(limit / 3));
  time += 60_000;
  await exchange(...nodes);
  expect(nodes[0]!.spend()).toBeGreaterThanOrEqual(Math.floor(limit / 3));
});

it("a node alone has the whole limit and writes nothing, and one that joins counts no older calls", async () => {
  const first = await startNode(1);
  expect(first.spend()).toBe(limit);
  await exchange(first);
  expect((await storage.read.selectFrom("node_rates").selectAll().execute()).length).toBe(0);
  first.node.live = 2;
  time += 60_000;
  expect(first.spend()).toBe(limit / 2);
  await exchange(first);
  const second = await startNode(2);
  expect(second.spend()).toBe(limit / 2);
});
