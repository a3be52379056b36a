import { z } from "zod";
import { phases } from "../../../control/rulesets/ruleset.ts";
import { cursorPagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";

/** Rules that choose snippets are those of the product snippet_rules. */
const executed: readonly string[] = phases.filter((phase) => phase !== "http_request_snippets");

const rule = z.object({
  expression: z.string().max(65_536),
  action: z.string().max(64),
  action_parameters: z.record(z.string(), z.unknown()).default({}),
  description: z.string().max(1024).default(""),
  enabled: z.boolean().default(true),
});
const schema = z.object({ phase: z.string().max(64), rules: z.array(rule).max(10_000) });

/** The rules of a zone, for each phase that an installation executes. */
export const ruleset = product({
  name: "ruleset",
  group: "rules",
  scope: "zone",
  schema,
  key: ({ phase }) => phase,
  async *read({ account, zone, leaveOut }) {
    const { client } = account;
    const all = path`/zones/${zone.id}/rulesets`;
    const after = (info: Record<string, unknown>): unknown =>
      (info["cursors"] as { after?: unknown } | undefined)?.after;
    for (const { id, kind, phase, name } of await cursorPagesOf(client, all, "cursor", after)) {
      // Managed rulesets belong to the provider, root rulesets to the account, and snippet rules to another product.
      if (kind === "managed" || kind === "root" || phase === "http_request_snippets") continue;
      const { result } = await client.get(path`/zones/${zone.id}/rulesets/${String(id)}`);
      const { rules } = (result ?? {}) as { rules?: unknown };
      const found = Array.isArray(rules) ? (rules as { description?: string; expression?: string }[]) : [];
      if (kind === "zone" && executed.includes(String(phase))) {
        if (found.length > 0) yield { id: String(id), value: { phase, rules: found } };
      } else {
        const why = `an installation does not execute ${String(kind)} rules of the phase ${String(phase)}`;
        leaveOut(
          found.map((each, index) => each.description || `${String(name)}, rule ${index + 1}`),
          why,
        );
      }
    }
  },
  async write({ account, zone }, { phase, rules }) {
    await account.client.send("PUT", path`/zones/${zone.id}/rulesets/phases/${phase}/entrypoint`, { rules });
  },
  async remove({ account, zone }, { value: { phase } }) {
    const body = { rules: [] };
    await account.client.send("PUT", path`/zones/${zone.id}/rulesets/phases/${phase}/entrypoint`, body);
  },
});
