import { expect, it } from "vitest";
import { ask } from "../scripts/harness.ts";
import { isPrevious } from "./harness.ts";
import { useProject } from "./use-project.ts";

/** Unmodified wrangler deploys classes of Durable Objects with their migrations. */
const used = useProject();
const timeout = 300_000;

const source = (name: string): string => `import { DurableObject } from "cloudflare:workers";
export class ${name} extends DurableObject {
  async visit() {
    const visits = (this.ctx.storage.kv.get("visits") ?? 0) + 1;
    this.ctx.storage.kv.put("visits", visits);
    return "visit " + visits;
  }
}
export default { async fetch(request: Request, env: any) {
  return new Response(await env.ROOMS.getByName("lobby").visit());
} };`;

it(
  "deploys a class, deploys again, renames it and deletes it",
  async () => {
    const config = (class_name: string, migrations: object[]) => ({
      name: "rooms",
      main: "index.ts",
      compatibility_date: "2026-01-01",
      durable_objects: { bindings: [{ name: "ROOMS", class_name }] },
      migrations,
    });
    const answer = async (): Promise<string> => (await ask(used.server, "rooms")).body;
    const first = { tag: "v1", new_sqlite_classes: ["Room"] };
    used.project.write({ "wrangler.json": config("Room", [first]), "index.ts": source("Room") });
    expect(await used.project.run(["deploy"])).toContain("ROOMS");
    expect([await answer(), await answer()]).toEqual(["visit 1", "visit 2"]);
    await used.project.run(["deploy"]);
    expect(await answer()).toBe("visit 3");
    const second = { tag: "v2", renamed_classes: [{ from: "Room", to: "Hall" }] };
    used.project.write({ "wrangler.json": config("Hall", [first, second]), "index.ts": source("Hall") });
    await used.project.run(["deploy"]);
    expect(await answer()).toBe("visit 4");
    used.project.write({
      "wrangler.json": {
        name: "rooms",
        main: "index.ts",
        compatibility_date: "2026-01-01",
        migrations: [first, second, { tag: "v3", deleted_classes: ["Hall"] }],
      },
      "index.ts": `export default { fetch: () => new Response("no rooms") };`,
    });
    await used.project.run(["deploy"]);
    expect(await answer()).toBe("no rooms");
    const path = `/accounts/${used.server.ready.account_id}/workers/durable_objects/namespaces`;
    expect((await used.server.call("GET", path)).body.result).toEqual([]);
  },
  timeout,
);

// wrangler 3 knows no exports.
if (!isPrevious)
  it(
    "deploys classes that are declared in exports",
    async () => {
      const live = { type: "durable-object", storage: "sqlite" };
      const config = (class_name: string, exports: object) => ({
        name: "declared",
        main: "index.ts",
        compatibility_date: "2026-01-01",
        durable_objects: { bindings: [{ name: "ROOMS", class_name }] },
        exports,
      });
      const answer = async (): Promise<string> => (await ask(used.server, "declared")).body;
      used.project.write({ "wrangler.json": config("Room", { Room: live }), "index.ts": source("Room") });
      expect(await used.project.run(["deploy"])).toMatch(/Created: Room/);
      expect(await answer()).toBe("visit 1");
      const renamed = { Room: { type: "durable-object", state: "renamed", renamed_to: "Hall" }, Hall: live };
      used.project.write({ "wrangler.json": config("Hall", renamed), "index.ts": source("Hall") });
      expect(await used.project.run(["deploy"])).toMatch(/Renamed: Room → Hall/);
      expect(await answer()).toBe("visit 2");
    },
    timeout,
  );
