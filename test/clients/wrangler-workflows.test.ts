import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startWorkflowHosting, type WorkflowHosting } from "../workflows/hosting.ts";

/** `wrangler deploy` of a workflow, and `wrangler workflows …`, with only the address changed. */
const wrangler = join(
  dirname(createRequire(import.meta.url).resolve("wrangler/package.json")),
  "bin/wrangler.js",
);
let hosting: WorkflowHosting;
let folder: string;

beforeAll(async () => {
  hosting = await startWorkflowHosting();
  folder = mkdtempSync(join(tmpdir(), "wrangler-"));
  writeFileSync(
    join(folder, "wrangler.json"),
    JSON.stringify({
      name: "shop",
      main: "index.js",
      compatibility_date: "2026-11-01",
      workflows: [{ name: "orders", binding: "ORDERS", class_name: "Order" }],
    }),
  );
  writeFileSync(
    join(folder, "index.js"),
    `import { WorkflowEntrypoint } from "cloudflare:workers";
export class Order extends WorkflowEntrypoint {
  async run(event, step) {
    const price = await step.do("price", async () => event.payload.count * 2);
    const { payload } = await step.waitForEvent("paid", { type: "payment", timeout: "1 hour" });
    return { price, payload };
  }
}
export default { async fetch(request, env) { return Response.json((await env.ORDERS.create({ id: "bound" })).id); } };`,
  );
});
afterAll(async () => {
  await hosting.close(1000);
  rmSync(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<string> {
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    CI: "1",
    NO_COLOR: "1",
    CLOUDFLARE_API_BASE_URL: hosting.ready.api,
    CLOUDFLARE_API_TOKEN: ownerToken,
    CLOUDFLARE_ACCOUNT_ID: hosting.account,
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
  };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [wrangler, ...args], { cwd: folder, env }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`wrangler ${args.join(" ")}: ${stdout}${stderr}`));
    });
  });
}

// Each command is a separate process that takes seconds to start.
const timeoutMs = 480_000;

it(
  "deploys a workflow, triggers it, and manages its instances",
  async () => {
    expect(await run("deploy")).toContain("orders");
    expect((await hosting.ask("shop")).body).toBe('"bound"');

    expect(await run("workflows", "list")).toContain("orders");
    expect(await run("workflows", "describe", "orders")).toContain("Order");
    expect(await run("workflows", "trigger", "orders", '{"count":21}', "--id", "one")).toContain("one");
    await hosting.until("orders", "one", ["waiting"]);
    const instances = (...args: string[]): Promise<string> => run("workflows", "instances", ...args);
    expect(await instances("list", "orders")).toContain("one");
    await instances("pause", "orders", "one");
    expect(await hosting.status("orders", "one")).toMatchObject({ status: "paused" });
    await instances("resume", "orders", "one");
    await hosting.until("orders", "one", ["waiting"]);
    await instances("send-event", "orders", "one", "--type", "payment", "--payload", '{"by":"card"}');
    expect(await hosting.end("orders", "one")).toMatchObject({
      output: { price: 42, payload: { by: "card" } },
    });
    const described = await instances("describe", "orders", "one");
    expect(described).toContain("price-1");
    expect(described).toContain("Completed");
    expect(await instances("describe", "orders", "latest")).toContain("price-1");
    await instances("restart", "orders", "one");
    await hosting.until("orders", "one", ["waiting"]);
    await instances("terminate", "orders", "one");
    expect(await hosting.status("orders", "one")).toMatchObject({ status: "terminated" });
    expect(await run("workflows", "delete", "orders")).toContain("removed");
    expect((await hosting.call("GET", `/accounts/${hosting.account}/workflows`)).body.result).toEqual([]);
  },
  timeoutMs,
);
