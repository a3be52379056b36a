import { afterAll, beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { startHosting, type Hosting } from "./platform.ts";

/** Project creators write the current date into a new project, so every date that workerd knows must work. */
let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting({ ephemeral: false, dataDir: temporaryFolder() });
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

test.each(["2021-11-10", "2024-01-01", today])(
  "a script of %s with a service and an object",
  async (date) => {
    const name = `bound-${date}`;
    await hosting.deploy(name, {
      code: `export class Room { constructor() {} fetch() { return new Response("room"); } }
      export default { async fetch(request, env) {
        if (new URL(request.url).pathname === "/own") return new Response("own");
        const answers = [env.SELF.fetch("https://a/own"), env.ROOM.get(env.ROOM.idFromName("a")).fetch("https://a/")];
        return new Response((await Promise.all(answers.map(async (each) => (await each).text()))).join(" "));
      } };`,
      bindings: [
        { type: "service", name: "SELF", service: name },
        { type: "durable_object_namespace", name: "ROOM", class_name: "Room" },
      ],
      metadata: {
        compatibility_date: date,
        migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] },
      },
    });
    expect((await hosting.ask(name)).body).toBe("own room");
  },
);
