import { z } from "zod";
import { objectsIn, pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";

/** Workflows: the names of classes of scripts. Their instances stay where they run. */
export const workflow = product({
  name: "workflow",
  group: "workflows",
  scope: "account",
  schema: z.object({
    name: z.string().min(1).max(64),
    class_name: z.string().max(255),
    script_name: z.string().max(255),
    schedules: z.array(z.string().max(255)).max(100),
  }),
  key: ({ name }) => name,
  async *read({ account, leaveOut }) {
    for (const each of await pagesOf(account.client, path`/accounts/${account.accountId}/workflows`, 50)) {
      const { name, class_name, script_name, schedules, instances } = each;
      const crons = objectsIn(schedules).map(({ cron }) => String(cron));
      yield { id: String(name), value: { name, class_name, script_name, schedules: crons.sort() } };
      const counts = Object.entries((instances ?? {}) as Record<string, unknown>).filter(
        ([, count]) => typeof count === "number" && count > 0,
      );
      leaveOut(
        counts.map(([status, count]) => `${String(name)}: ${String(count)} ${status}`),
        "instances stay in the account where they were started",
        "workflow_instances",
      );
    }
  },
  async write({ account }, { name, class_name, script_name, schedules }) {
    await account.client.send("PUT", path`/accounts/${account.accountId}/workflows/${name}`, {
      class_name,
      script_name,
      schedules: schedules.map((cron) => ({ cron })),
    });
  },
  async remove({ account }, { value: { name } }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/workflows/${name}`);
  },
});
