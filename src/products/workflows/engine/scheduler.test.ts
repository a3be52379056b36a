import { expect, it } from "vitest";
import { InstanceScheduler, type Queued } from "./scheduler.ts";

/** The order in which instances get slots (24). */
function startedBy(limit: number, queue: (scheduler: InstanceScheduler) => void): number[] {
  const started: number[] = [];
  const scheduler = new InstanceScheduler(limit, (rid) => started.push(rid));
  scheduler.enqueue(of(0, 99), "fresh");
  queue(scheduler);
  for (let at = 0; at < started.length; at++)
    scheduler.leave(started[at]!, "a", workflows.get(started[at]!)!);
  return started.slice(1);
}
const workflows = new Map<number, number>();
function of(rid: number, workflowRid: number): Queued {
  workflows.set(rid, workflowRid);
  return { rid, accountId: "a", workflowRid, isQuarantined: false };
}

it("workflows take turns, however many instances of one came first", () => {
  const order = startedBy(1, (scheduler) => {
    for (const rid of [1, 2, 3, 4, 5]) scheduler.enqueue(of(rid, 1), "fresh");
    for (const rid of [11, 12]) scheduler.enqueue(of(rid, 2), "fresh");
  });
  expect(order).toEqual([1, 11, 2, 12, 3, 4, 5]);
});

it("woken instances come before instances that never ran", () => {
  const order = startedBy(1, (scheduler) => {
    for (const rid of [1, 2]) scheduler.enqueue(of(rid, 1), "fresh");
    for (const rid of [11, 12]) scheduler.enqueue(of(rid, 1), "woken");
  });
  expect(order).toEqual([11, 12, 1, 2]);
});
