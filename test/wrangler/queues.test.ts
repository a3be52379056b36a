import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { isPrevious, Project } from "./harness.ts";

/** Unmodified wrangler manages queues, and deploys producers and consumers. */
let server: TestServer;
let project: Project;
const timeout = 300_000;

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
  project.write({
    "wrangler.json": {
      name: "worker",
      main: "index.js",
      compatibility_date: "2026-01-01",
      kv_namespaces: [{ binding: "KV", id: await namespace() }],
      queues: {
        producers: [{ binding: "JOBS", queue: "jobs" }],
        consumers: [
          {
            queue: "jobs",
            max_batch_size: 5,
            max_batch_timeout: 0,
            max_retries: 1,
            dead_letter_queue: "dead",
          },
        ],
      },
    },
    "index.js": `export default {
      async fetch(request, env) {
        const { pathname } = new URL(request.url);
        if (pathname === "/taken") return new Response(await env.KV.get("taken"));
        await env.JOBS.send({ path: pathname });
        return new Response("sent");
      },
      async queue(batch, env) {
        for (const { body, attempts } of batch.messages) {
          if (body.path === "/poison") throw new Error("poison");
          await env.KV.put("taken", batch.queue + " " + body.path + " " + attempts);
        }
      },
    };`,
  });
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

async function namespace(): Promise<string> {
  const path = `/accounts/${server.ready.account_id}/storage/kv/namespaces`;
  return String((await server.call("POST", path, { title: "taken" })).body.result.id);
}
const body = async (path: string): Promise<string> => (await ask(server, "worker", path)).body;
const wrangler = async (...args: string[]): Promise<string> => project.run(["queues", ...args]);

it(
  "creates, lists, describes, changes, pauses, purges and deletes",
  async () => {
    expect(await wrangler("create", "first", "--delivery-delay-secs", "5")).toContain(
      "Created queue 'first'",
    );
    expect(await wrangler("list")).toContain("first");
    expect(await wrangler("info", "first")).toMatch(/Queue Name: first[\s\S]*Number of Producers: 0/);
    await wrangler("update", "first", "--message-retention-period-secs", "3600");
    await wrangler("pause-delivery", "first");
    const [queue] = server.services.queues.list(server.ready.account_id);
    expect(queue!.settings).toEqual({ deliveryDelay: 5, isDeliveryPaused: true, retentionSeconds: 3600 });
    await wrangler("resume-delivery", "first");
    if ((await wrangler("--help")).includes("queues purge"))
      expect(await wrangler("purge", "first", "--force")).toContain("first");
    await wrangler("delete", "first");
    expect(server.services.queues.list(server.ready.account_id)).toEqual([]);
    const again = await project.attempt(["queues", "info", "first"]);
    expect(again).toMatchObject({ code: 1, output: expect.stringContaining('"first" does not exist') });
  },
  timeout,
);

it(
  "deploys a script that sends and takes; its failures become dead letters",
  async () => {
    await wrangler("create", "dead");
    await wrangler("create", "jobs");
    const deployed = await project.run(["deploy"]);
    expect(deployed).toContain("Producer for jobs");
    expect(deployed).toContain("Consumer for jobs");
    expect(await body("/hello")).toBe("sent");
    await vi.waitFor(async () => expect(await body("/taken")).toBe("jobs /hello 1"));

    // A second time, with an existing consumer.
    await project.run(["deploy"]);
    expect(await wrangler("info", "jobs")).toMatch(/Producers: worker:worker[\s\S]*Consumers: worker:worker/);
    await body("/poison");
    const dead = server.services.queues.findByName(server.ready.account_id, "dead")!;
    await vi.waitFor(async () =>
      expect(await server.services.queueMessages.backlog(dead)).toMatchObject({ count: 1 }),
    );
  },
  timeout,
);

it(
  "says that nothing here sends events to subscribe to",
  async () => {
    if (isPrevious) return; // wrangler 3 has no such command
    const subscription = (...args: string[]) => project.attempt(["queues", "subscription", ...args]);
    await wrangler("create", "subscribed");
    expect(await wrangler("subscription", "list", "subscribed")).toContain("No event subscriptions");
    const asked = ["--source", "kv", "--events", "namespace.created"];
    expect(await subscription("create", "subscribed", ...asked)).toMatchObject({
      code: 1,
      output: expect.stringContaining('nothing here sends events of "kv"'),
    });
    for (const command of [["get"], ["update", "--name", "other"], ["delete", "--force"]])
      expect(await subscription(...command, "subscribed", "--id", "0".repeat(32))).toMatchObject({
        code: 1,
        output: expect.stringContaining('0" does not exist'),
      });
    await wrangler("delete", "subscribed");
  },
  timeout,
);

it(
  "adds, lists and removes consumers of both kinds",
  async () => {
    await wrangler("consumer", "worker", "remove", "jobs", "worker");
    const find = () => server.services.queues.findByName(server.ready.account_id, "jobs")!;
    expect(find().consumer).toBeUndefined();
    await wrangler("consumer", "add", "jobs", "worker", "--batch-size", "7", "--dead-letter-queue", "dead");
    expect(find().consumer).toMatchObject({
      scriptName: "worker",
      deadLetterQueue: "dead",
      settings: { batchSize: 7 },
    });
    expect(await wrangler("info", "jobs")).toContain("Consumers: worker:worker");
    await wrangler("consumer", "worker", "remove", "jobs", "worker");
    await wrangler("consumer", "http", "add", "jobs", "--visibility-timeout-secs", "60");
    expect(find().consumer).toMatchObject({ type: "http_pull", settings: { visibilityTimeoutMs: 60_000 } });
    await wrangler("consumer", "http", "remove", "jobs");
    expect(find().consumer).toBeUndefined();
  },
  timeout,
);
