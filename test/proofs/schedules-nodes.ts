import { parseArgs } from "node:util";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "../helpers/postgres.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/**
 * Two nodes on one database, and scripts that are due every minute: each minute runs each script once, also when a node goes
 * and comes back. `node test/proofs/schedules-nodes.ts --minutes 4 --scripts 10`
 */
const { values } = parseArgs({
  options: { minutes: { type: "string", default: "4" }, scripts: { type: "string", default: "10" } },
});
const [minutes, scripts] = [Number(values.minutes), Number(values.scripts)];
const minuteMs = 60_000;
const nextMinute = (): number => Math.ceil(Date.now() / minuteMs) * minuteMs;
const until = async (time: number): Promise<void> => delay(Math.max(0, time - Date.now()));

const postgres = await startPostgres();
const databaseUrl = await postgres.createDatabase();
const first = await startHosting({ databaseUrl });
let second: Hosting | undefined = await startHosting({ databaseUrl });
const account = `/accounts/${first.account}`;
const { id } = (await first.call("POST", `${account}/storage/kv/namespaces`, { title: "runs" })).body
  .result as {
  id: string;
};
const code = `export default { async scheduled({ scheduledTime }, env) {
  await env.KV.put(env.NAME + " " + scheduledTime + " " + crypto.randomUUID(), "");
} };`;
for (let i = 0; i < scripts; i++) {
  const name = `timed-${i}`;
  const bindings = [
    { type: "kv_namespace", name: "KV", namespace_id: id },
    { type: "plain_text", name: "NAME", text: name },
  ];
  await first.deploy(name, { code, bindings });
  await first.call("PUT", `${account}/workers/scripts/${name}/schedules`, [{ cron: "* * * * *" }]);
}
const from = nextMinute();
const to = from + (minutes - 1) * minuteMs;
for (let minute = from; minute <= to; minute += minuteMs) {
  await until(minute + minuteMs / 2);
  // One node goes after the first minute, and comes back after the second.
  if (minute === from) {
    await second?.close(1000);
    second = undefined;
  } else second ??= await startHosting({ databaseUrl });
  process.stdout.write(`${new Date(minute).toISOString()} is over\n`);
}
const keys = (await first.call("GET", `${account}/storage/kv/namespaces/${id}/keys?limit=1000`)).body
  .result as {
  name: string;
}[];
const runs = new Map<string, number>();
for (const { name } of keys) {
  const [script, time] = name.split(" ");
  if (Number(time) >= from) runs.set(`${script} ${time}`, (runs.get(`${script} ${time}`) ?? 0) + 1);
}
const twice = [...runs.values()].filter((count) => count > 1).length;
process.stdout.write(
  `${scripts} scripts, ${minutes} minutes, 2 nodes: ${runs.size} of ${scripts * minutes} runs, ${twice} made twice\n`,
);
await second?.close(1000);
await first.close(1000);
await postgres.stop();
process.exit(runs.size === scripts * minutes && twice === 0 ? 0 : 1);
