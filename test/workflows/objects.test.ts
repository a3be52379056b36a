import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** A workflow uses objects and databases as its script does. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = `import { DurableObject, WorkflowEntrypoint } from "cloudflare:workers";
export class Status extends DurableObject {
  async add(count) {
    const sum = ((await this.ctx.storage.get("sum")) ?? 0) + count;
    await this.ctx.storage.put("sum", sum);
    return sum;
  }
  fetch() { return new Response("fetched"); }
}
export class Flow extends WorkflowEntrypoint {
  async run(event, step) {
    const status = this.env.STATUS.getByName(event.instanceId);
    return [
      await status.add(1),
      await step.do("add", () => this.env.STATUS.getByName(event.instanceId).add(2)),
      await step.do("fetch", async () => (await status.fetch("http://object/")).text()),
      await step.do("query", () => this.env.DB.prepare("select ? as n").bind(3).first("n")),
    ];
  }
}
export default {};`;

it("calls methods of objects, fetches from them, and queries a database", async () => {
  const account = `/accounts/${hosting.account}`;
  const { body } = await hosting.call("POST", `${account}/d1/database`, { name: "flow" });
  await hosting.deploy("flow", {
    code,
    bindings: [
      { type: "durable_object_namespace", name: "STATUS", class_name: "Status" },
      { type: "d1", name: "DB", id: (body.result as { uuid: string }).uuid },
    ],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Status"] } },
  });
  await hosting.call("PUT", `${account}/workflows/flow`, { script_name: "flow", class_name: "Flow" });
  const ended = await hosting.call("POST", `${account}/workflows/flow/instances?wait=20`, {});
  expect(ended.body.result).toMatchObject({ status: "complete", output: [1, 3, "fetched", 3] });
});
