import { expect, it, onTestFinished, vi } from "vitest";
import { startHosting } from "../runtime/platform.ts";

it("a batch whose handler does not end is delivered again", async () => {
  const server = await startHosting({ scriptEventSeconds: 2 });
  onTestFinished(async () => server.close(0));
  const account = `/accounts/${server.account}`;
  const namespace = await server.createKv("attempts");
  const { result } = (await server.call("POST", `${account}/queues`, { queue_name: "slow" })).body;
  await server.deploy("slow", {
    code: `export default {
      async fetch(request, env) { await env.JOBS.send("hello"); return new Response("sent"); },
      async queue({ messages: [{ attempts }] }, env) {
        if (attempts === 1) await new Promise((done) => setTimeout(done, 3_600_000));
        await env.KV.put("attempts", String(attempts));
      },
    };`,
    bindings: [
      { type: "queue", name: "JOBS", queue_name: "slow" },
      { type: "kv_namespace", name: "KV", namespace_id: namespace },
    ],
  });
  await server.call("POST", `${account}/queues/${(result as { queue_id: string }).queue_id}/consumers`, {
    type: "worker",
    script_name: "slow",
    settings: { max_wait_time_ms: 0 },
  });
  expect((await server.ask("slow")).body).toBe("sent");
  const path = `${account}/storage/kv/namespaces/${namespace}/values/attempts`;
  await vi.waitFor(async () => expect((await server.call("GET", path)).body).toBe(2), {
    interval: 100,
  });
});
