import assert from "node:assert/strict";
import type { FiredWork, Selvedge } from "../../src/testkit/start-selvedge.ts";
import { call, deployNoting } from "./helpers.ts";

export const hourMs = 3_600_000;

/** A shop: it counts its stock by a schedule, bills after a month, repeats a delivery, and closes a sale by an alarm. */
const source = `
import { DurableObject, WorkflowEntrypoint } from "cloudflare:workers";
const note = (env, text, at = Date.now()) => env.LOG.put(new Date(at).toISOString().slice(0, 16) + " " + text, "done");
export default {
  scheduled: (event, env) => note(env, "stock", event.scheduledTime),
  async queue(batch, env) {
    for (const message of batch.messages) {
      await note(env, "delivery " + message.attempts);
      if (message.attempts < 3) message.retry({ delaySeconds: 3600 });
    }
  },
  async fetch(request, env) {
    await env.SALE.get(env.SALE.idFromName("sale")).open(Number(await request.text()));
    return new Response("open");
  },
};
export class Sale extends DurableObject {
  open(at) { return this.ctx.storage.setAlarm(at); }
  alarm() { return note(this.env, "sale is over"); }
}
export class Bill extends WorkflowEntrypoint {
  async run(event, step) {
    await step.sleep("month", "29 days");
    await step.do("charge", { retries: { limit: 3, delay: "1 hour", backoff: "constant" } }, async ({ attempt }) => {
      await note(this.env, "charge " + attempt);
      if (attempt < 3) throw new Error("declined");
    });
  }
}`;

interface Month {
  startMs: number;
  /** Checks all work of 30 days, what it has written, and what is over. */
  check(work: readonly FiredWork[], schedules: number): Promise<void>;
}

/** Deploys the shop, and begins everything that comes due within 30 days. */
export async function prepareMonth(edge: Selvedge, cron: string): Promise<Month> {
  const account = `/accounts/${edge.accountId}`;
  const startMs = (await edge.clock.now()).getTime();
  const namespaces = `${account}/storage/kv/namespaces`;
  const id = await deployNoting(edge, "shop", source, { name: "SALE", class_name: "Sale" });
  await call(edge, "PUT", `${account}/workers/scripts/shop/schedules`, [{ cron }]);

  const workflow = { script_name: "shop", class_name: "Bill" };
  await call(edge, "PUT", `${account}/workflows/bill`, workflow);
  await call(edge, "POST", `${account}/workflows/bill/instances`, { instance_id: "march" });

  const { queue_id } = await call<{ queue_id: string }>(edge, "POST", `${account}/queues`, {
    queue_name: "out",
  });
  const settings = { max_wait_time_ms: 0, max_retries: 5 };
  await call(edge, "POST", `${account}/queues/${queue_id}/consumers`, {
    type: "worker",
    script_name: "shop",
    settings,
  });
  await call(edge, "POST", `${account}/queues/${queue_id}/messages`, {
    body: "parcel",
    delay_seconds: 43_200,
  });

  await edge.fetchScript("shop", "http://shop.example/", {
    method: "POST",
    body: String(startMs + 20 * 24 * hourMs),
  });
  const offer = new FormData();
  offer.set("value", "half the price");
  offer.set("metadata", "{}");
  await call(edge, "PUT", `${namespaces}/${id}/values/offer?expiration_ttl=${10 * 86_400}`, offer);
  const token = await edge.tokenWith(["Zone Read"], { expires: new Date(startMs + 15 * 24 * hourMs) });

  const keys = async (): Promise<string[]> => keysOf(edge, `${namespaces}/${id}/keys`);
  assert.deepEqual(await keys(), ["offer"]);
  return { startMs, check: (work, schedules) => check(edge, startMs, { work, schedules, keys, token }) };
}

/** All keys of a namespace. */
async function keysOf(edge: Selvedge, path: string): Promise<string[]> {
  const headers = { authorization: `Bearer ${edge.token}` };
  const names: string[] = [];
  let cursor = "";
  do {
    const answer = await fetch(`${edge.urls.api}${path}?cursor=${encodeURIComponent(cursor)}`, { headers });
    const page = (await answer.json()) as { result: { name: string }[]; result_info: { cursor: string } };
    names.push(...page.result.map(({ name }) => name));
    ({ cursor } = page.result_info);
  } while (cursor !== "");
  return names;
}

async function check(
  edge: Selvedge,
  startMs: number,
  wanted: { work: readonly FiredWork[]; schedules: number; keys: () => Promise<string[]>; token: string },
): Promise<void> {
  const { work, schedules } = wanted;
  const times = work.map(({ at }) => at);
  assert.deepEqual(times, times.toSorted());
  const after = (hours: number): string => new Date(startMs + hours * hourMs).toISOString();
  const timesOf = (kind: string): string[] => work.flatMap((each) => (each.kind === kind ? [each.at] : []));
  assert.equal(timesOf("schedules").length, schedules);
  assert.deepEqual(timesOf("queues"), [after(12), after(13), after(14)]);
  assert.deepEqual(timesOf("objects"), [after(20 * 24)]);
  assert.deepEqual(timesOf("workflows"), [after(29 * 24), after(29 * 24 + 1), after(29 * 24 + 2)]);
  assert.equal(work.length, schedules + 7);

  // Every piece of work has seen its own time. The key with an expiration is gone, and the token is refused.
  const notes = await wanted.keys();
  assert.deepEqual(
    notes.map((each) => each.slice(0, 16)),
    times.map((each) => each.slice(0, 16)),
  );
  assert.deepEqual(
    notes.filter((each) => !each.endsWith("stock")).map((each) => each.slice(17)),
    ["delivery 1", "delivery 2", "delivery 3", "sale is over", "charge 1", "charge 2", "charge 3"],
  );
  const headers = { authorization: `Bearer ${wanted.token}` };
  assert.equal((await fetch(`${edge.urls.api}/zones`, { headers })).status, 401);
  const instances = `/accounts/${edge.accountId}/workflows/bill/instances`;
  const { status } = await call<{ status: string }>(edge, "GET", `${instances}/march`);
  assert.equal(status, "complete");
}
