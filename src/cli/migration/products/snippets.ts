import { z } from "zod";
import { objectsIn, pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";
import { ModuleSchema, modulesIn, uploadOf } from "./modules.ts";

/** The code of snippets. */
export const snippet = product({
  name: "snippet",
  group: "snippets",
  scope: "zone",
  schema: z.object({
    name: z.string().max(255),
    main_module: z.string().max(1024),
    modules: z.array(ModuleSchema).min(1).max(100),
  }),
  key: ({ name }) => name,
  async *read({ account, zone }) {
    for (const { snippet_name } of await pagesOf(account.client, path`/zones/${zone.id}/snippets`, 25)) {
      const name = String(snippet_name);
      const content = await account.client.bytes(path`/zones/${zone.id}/snippets/${name}/content`);
      const modules = await modulesIn(content);
      yield { id: name, value: { name, main_module: content.entrypoint ?? modules[0]?.name, modules } };
    }
  },
  async write({ account, zone }, { name, main_module, modules }) {
    const form = uploadOf({ main_module }, modules);
    await account.client.send("PUT", path`/zones/${zone.id}/snippets/${name}`, form);
  },
  async remove({ account, zone }, { value: { name } }) {
    await account.client.send("DELETE", path`/zones/${zone.id}/snippets/${name}`);
  },
});

const rule = z.object({
  description: z.string().max(1024).default(""),
  enabled: z.boolean().default(false),
  expression: z.string().max(65_536),
  snippet_name: z.string().max(255),
});

/** The rules of a zone that choose snippets: a list in order, which is written as a whole. */
export const snippetRules = product({
  name: "snippet_rules",
  group: "snippets",
  scope: "zone",
  schema: z.object({ rules: z.array(rule).max(1000) }),
  key: () => "rules",
  async *read({ account, zone }) {
    const { result } = await account.client.get(path`/zones/${zone.id}/snippets/snippet_rules`);
    const rules = objectsIn(result);
    if (rules.length > 0) yield { id: zone.id, value: { rules } };
  },
  async write({ account, zone }, { rules }) {
    await account.client.send("PUT", path`/zones/${zone.id}/snippets/snippet_rules`, { rules });
  },
  async remove({ account, zone }) {
    await account.client.send("DELETE", path`/zones/${zone.id}/snippets/snippet_rules`);
  },
});
