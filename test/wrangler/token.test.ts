import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { isPrevious, Project } from "./harness.ts";

/** wrangler with a token of the template "Edit Cloudflare Workers", as users have, instead of an owner's token. */
let server: TestServer;
let project: Project;

beforeAll(async () => {
  server = await startTestServer();
  const { account_id } = server.ready;
  const zone = (await server.call("POST", "/zones", { name: "token.example" })).body.result.id as string;
  const record = { type: "A", name: "www", content: "192.0.2.1", proxied: true };
  await server.call("POST", `/zones/${zone}/dns_records`, record);
  const user = (await server.call("GET", "/user")).body.result.id as string;
  const groups = (...names: string[]) => names.map((name) => ({ name }));
  const policy = (resource: string, permission_groups: object[]) => ({
    effect: "allow",
    resources: { [resource]: "*" },
    permission_groups,
  });
  const token = await server.call("POST", "/user/tokens", {
    name: "Edit Cloudflare Workers",
    policies: [
      policy(
        `com.cloudflare.api.account.${account_id}`,
        groups(
          "Workers Scripts Write",
          "Workers KV Storage Write",
          "Workers Tail Read",
          "Account Settings Read",
        ),
      ),
      policy("com.cloudflare.api.account.zone.*", groups("Workers Routes Write")),
      policy(`com.cloudflare.api.user.${user}`, groups("User Details Read", "Memberships Read")),
    ],
  });
  project = new Project(server, token.body.result.value as string);
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

it("deploys with all that its token allows, finding the account and the zone by itself", async () => {
  expect(await project.run(["whoami"])).toContain(server.ready.account_id);
  project.write({
    "wrangler.json": {
      name: "scoped",
      main: "index.js",
      compatibility_date: "2026-01-01",
      kv_namespaces: [{ binding: "KV" }],
      routes: ["www.token.example/*", { pattern: "token.example/*", zone_name: "token.example" }],
    },
    "index.js": `export default { fetch: () => new Response("deployed with a scoped token") };`,
  });
  await project.run(["deploy", ...(isPrevious ? ["--experimental-provision"] : [])]);
  const { body } = await requestEdge(server.ready.edge, "www.token.example");
  expect(body).toBe("deployed with a scoped token");
}, 300_000);
