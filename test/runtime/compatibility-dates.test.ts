import { afterAll, beforeAll, expect, test } from "vitest";
import { startHosting, type Hosting } from "./platform.ts";

/** Project creators write the current date into a new project, so every date that workerd knows must work. */
let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
});
afterAll(async () => hosting.close(0));

const today = new Date().toISOString().slice(0, 10);

test.each([
  ["2021-11-10", []],
  ["2023-10-30", []],
  ["2025-04-01", ["nodejs_compat"]],
  ["2026-11-16", ["nodejs_compat"]],
  ["2026-11-16", ["new_module_registry"]],
  ["2026-11-17", []],
  ["2026-11-17", ["nodejs_compat"]],
  [today, ["legacy_module_registry"]],
  [today, []],
])("a script of %s with %j", async (compatibility_date, compatibility_flags) => {
  const isNode = compatibility_flags.includes("nodejs_compat");
  await hosting.deploy("dated", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers"; import { connect } from "cloudflare:sockets";
      ${isNode ? `import net from "node:net";` : "const net = { connect };"}
      export class Other extends WorkerEntrypoint {}
      export default { fetch: () => Response.json([typeof connect, typeof net.connect, typeof WorkerEntrypoint]) };`,
    metadata: { compatibility_date, compatibility_flags },
  });
  expect((await hosting.ask("dated")).body).toBe(`["function","function","function"]`);
});
