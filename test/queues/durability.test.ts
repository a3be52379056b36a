import { afterEach, expect, it, vi } from "vitest";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";

/** Acknowledged messages survive a kill of the process, and are delivered at least once. */
const environment = {
  SELVEDGE_ACCOUNT_ID: "0123456789abcdef0123456789abcdef",
  SELVEDGE_API_TOKEN: "owner-token-for-tests",
  SELVEDGE_API_RATE_LIMIT: "0",
};
const account = `/accounts/${environment.SELVEDGE_ACCOUNT_ID}`;
let running: ServerProcess;
const timeout = 180_000;
afterEach(() => void running.process.kill("SIGKILL"));

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${running.ready.api}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${environment.SELVEDGE_API_TOKEN}`,
      "content-type": "application/json",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const envelope = (await response.json()) as { result: T; errors: object[] };
  if (!response.ok) throw new Error(JSON.stringify(envelope.errors));
  return envelope.result;
}

/** Runs many senders until the process is killed; returns the acknowledged messages. */
async function sendUntilKilled(messages: string, count: number): Promise<Set<string>> {
  const acknowledged = new Set<string>();
  const sender = async (name: string): Promise<void> => {
    for (let n = 0; ; n++) {
      const body = `${name} ${n}`;
      await call("POST", messages, { body, content_type: "text" });
      acknowledged.add(body);
      if (acknowledged.size === count) running.process.kill("SIGKILL");
    }
  };
  await Promise.allSettled(Array.from({ length: 8 }, async (_, i) => sender(`sender ${i}`)));
  expect(await running.exited).toBe("SIGKILL");
  expect(acknowledged.size).toBeGreaterThanOrEqual(count);
  return acknowledged;
}

it("pulls receive every acknowledged message", { timeout }, async () => {
  const args = ["--data-dir", temporaryFolder()];
  running = await serve(args, environment);
  const { queue_id } = await call<{ queue_id: string }>("POST", `${account}/queues`, { queue_name: "kept" });
  const queue = `${account}/queues/${queue_id}`;
  await call("POST", `${queue}/consumers`, { type: "http_pull" });
  const acknowledged = await sendUntilKilled(`${queue}/messages`, 300);

  running = await serve(args, environment);
  const pulled = new Set<string>();
  for (;;) {
    const { messages } = await call<{ messages: { body: string; lease_id: string }[] }>(
      "POST",
      `${queue}/messages/pull`,
      { batch_size: 100 },
    );
    if (messages.length === 0) break;
    for (const { body } of messages) pulled.add(body);
    const acks = messages.map(({ lease_id }) => ({ lease_id }));
    await call("POST", `${queue}/messages/ack`, { acks });
  }
  expect([...acknowledged].filter((body) => !pulled.has(body))).toEqual([]);
});

const code = `export default {
  async fetch(request, env) {
    const keys = await env.KV.list();
    return Response.json(keys.keys.map(({ name }) => name));
  },
  async queue({ messages }, env) {
    for (const { body } of messages) await env.KV.put(body, "taken");
  },
};`;

it("a consumer receives every message although the process is killed", { timeout }, async () => {
  const args = ["--data-dir", temporaryFolder()];
  running = await serve(args, environment);
  const { queue_id } = await call<{ queue_id: string }>("POST", `${account}/queues`, { queue_name: "kept" });
  const { id } = await call<{ id: string }>("POST", `${account}/storage/kv/namespaces`, { title: "taken" });
  const form = new FormData();
  const bindings = [{ type: "kv_namespace", name: "KV", namespace_id: id }];
  form.set("metadata", JSON.stringify({ main_module: "m.js", compatibility_date: "2026-01-01", bindings }));
  form.set("m.js", new File([code], "m.js", { type: "application/javascript+module" }));
  const authorization = `Bearer ${environment.SELVEDGE_API_TOKEN}`;
  const put = await fetch(`${running.ready.api}${account}/workers/scripts/taker`, {
    method: "PUT",
    headers: { authorization },
    body: form,
  });
  expect(put.status).toBe(200);
  const queue = `${account}/queues/${queue_id}`;
  const settings = { max_wait_time_ms: 0, batch_size: 5 };
  await call("POST", `${queue}/consumers`, { type: "worker", script_name: "taker", settings });
  const acknowledged = await sendUntilKilled(`${queue}/messages`, 200);

  running = await serve(args, environment);
  const missing = async (): Promise<string[]> => {
    const values = `${account}/storage/kv/namespaces/${id}/keys?limit=1000`;
    const taken = new Set((await call<{ name: string }[]>("GET", values)).map(({ name }) => name));
    return [...acknowledged].filter((body) => !taken.has(body));
  };
  await vi.waitFor(async () => expect(await missing()).toEqual([]), { timeout: 120_000, interval: 100 });
});
