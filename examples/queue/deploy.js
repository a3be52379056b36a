import { account, call, ensureNamespace, hostOf, uploadScript } from "../api.js";

/* Deploys a script with a queue, its dead letter queue and a schedule. It can be run again. */
const known = await call("GET", `${account}/queues`);
const queueOf = async (name) =>
  known.find(({ queue_name: each }) => each === name) ??
  (await call("POST", `${account}/queues`, { queue_name: name }));
const jobs = await queueOf("jobs");
await queueOf("jobs-dead");

await uploadScript(`${account}/workers/scripts/jobs`, new URL("jobs.js", import.meta.url), {
  bindings: [
    { type: "queue", name: "JOBS", queue_name: "jobs" },
    { type: "kv_namespace", name: "DONE", namespace_id: await ensureNamespace("jobs-done") },
  ],
});
const consumers = `${account}/queues/${jobs.queue_id}/consumers`;
if ((await call("GET", consumers)).length === 0)
  await call("POST", consumers, {
    type: "worker",
    script_name: "jobs",
    dead_letter_queue: "jobs-dead",
    settings: { batch_size: 20, max_wait_time_ms: 100, max_retries: 3 },
  });
await call("PUT", `${account}/workers/scripts/jobs/schedules`, [{ cron: "0 6 * * *" }]);
console.log(`http://${await hostOf("jobs")}/`);
