import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { capabilities } from "../src/capabilities.ts";
import { capability } from "../src/capability.ts";
import { operationsFor } from "../src/control/api/operation.ts";
import { loadConfig } from "../src/platform/config/config.ts";
import { start } from "../src/start.ts";
import { ownerToken } from "./helpers/server.ts";
import { visit } from "./helpers/visit.ts";

/** A new capability: all that the platform must know about it is in its declaration, and one line puts it into the list. */
const { operation } = operationsFor<{ notes: Map<string, string> }>();
const notes = capability({
  name: "notes",
  needs: [],
  create: () => ({ notes: new Map([["greeting", "hello from a note"]]) }),
  operations: [
    operation({
      id: "note_get",
      method: "GET",
      path: "/zones/{zone_id}/notes/{note_id}",
      summary: "Get a note",
      access: { scope: "zone", permission: "zone:read" },
      result: z.string(),
      handle: async ({ services, zone }) => `${services.notes.get("greeting")!} of ${zone.name}`,
    }),
  ],
  idParameters: ["note_id"],
  health: (services) => ({
    async notes() {
      if (services.notes.size === 0) throw new Error("there are no notes");
    },
  }),
  edgeHandlers: (services) => [
    {
      place: "snippets",
      async handler({ path, response }) {
        if (path !== "/note") return false;
        response.end(services.notes.get("greeting"));
        return true;
      },
    },
  ],
});

const listeners = { apiListen: "127.0.0.1:0", edgeListen: "127.0.0.1:0", dnsListen: "127.0.0.1:0" };
const { config } = loadConfig({ ephemeral: true, apiToken: ownerToken, ...listeners }, {}, undefined);
const begin = async () =>
  start([...capabilities, notes], {
    config,
    logger: pino({ level: "error" }),
    apiChecks: { validateResults: true },
    reserved: undefined,
  });
let platform: Awaited<ReturnType<typeof begin>>;
let api: string;
beforeAll(async () => {
  platform = await begin();
  api = `http://${platform.services.apiListener.authority}`;
});
afterAll(() => platform.close(0));

async function call(method: string, path: string, body?: object) {
  const response = await fetch(`${api}/client/v4${path}`, {
    method,
    headers: { authorization: `Bearer ${ownerToken}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    body: (await response.json()) as { result: never; errors: { code: number }[] },
  };
}

it("a declaration adds an operation with the checks of all operations", async () => {
  const created = await call("POST", "/zones", { name: "notes.example", type: "full" });
  const zone = (created.body.result as { id: string }).id;
  const id = "0".repeat(32);
  expect((await call("GET", `/zones/${zone}/notes/${id}`)).body.result).toBe(
    "hello from a note of notes.example",
  );
  expect((await call("GET", `/zones/${zone}/notes/no-id`)).body.errors).toMatchObject([{ code: 7003 }]);
  expect((await call("GET", `/zones/${id}/notes/${id}`)).status).toBe(404);
  expect((await fetch(`${api}/client/v4/zones/${zone}/notes/${id}`)).status).toBe(401);
});

it("a declaration adds a handler at the edge, and a part of the health", async () => {
  const edge = `http://${platform.services.edgeListener.authority}`;
  expect((await visit(edge, "any.example", "/note")).body).toBe("hello from a note");
  platform.services.health.phase = "serving";
  expect((await fetch(`${api}/readyz`)).status).toBe(200);
  platform.services.notes.clear();
  expect(await (await fetch(`${api}/readyz`)).json()).toMatchObject({ not_ready: ["notes"] });
});
