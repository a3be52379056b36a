import type { Page } from "playwright-core";
import { settled, type OpenConsole } from "./browser.ts";
import { scriptForm } from "./data.ts";

/** A workflow with as many steps as an instance asks for, and with a sleep between the first two. */
const code = `import { WorkflowEntrypoint } from "cloudflare:workers";
const work = () => new Promise((end) => setTimeout(end, 20));
export class Long extends WorkflowEntrypoint {
  async run({ payload: { steps, sleep } }, step) {
    await step.do("order", work);
    if (sleep) await step.sleep("delivery", sleep);
    await step.do("deliver", work);
    for (let from = 0; from < steps; from += 500) {
      const names = Array.from({ length: Math.min(500, steps - from) }, (_, i) => "page " + (from + i));
      await Promise.all(names.map((name) => step.do(name, () => name)));
    }
  }
}
export default { fetch: () => new Response() };`;

/** Makes the workflow "long". */
export async function makeLong({ call, platform }: OpenConsole): Promise<void> {
  const account = `/accounts/${platform.accountId}`;
  await call("PUT", `${account}/workers/scripts/long`, scriptForm(code));
  await call("PUT", `${account}/workflows/long`, { script_name: "long", class_name: "Long" });
}

/** Runs an instance with as many steps beside the first two, and opens it. */
export async function openLong(console: OpenConsole, steps: number): Promise<Page> {
  const instances = `/accounts/${console.platform.accountId}/workflows/long/instances`;
  await console.call("POST", `${instances}?wait=60`, { id: `of-${steps}`, params: { steps } });
  const page = await console.opened(`/workflows/long/of-${steps}`);
  await settled(page);
  return page;
}
