import { z } from "zod";
import { objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import type { MigratedAccount } from "../account/account.ts";
import { product } from "../product.ts";
import { codeShape, comparableCode, reachableCode, readCode, writeCode } from "./script-code.ts";

const allOf = (account: MigratedAccount): string =>
  path`/accounts/${account.accountId}/workers/dispatch/namespaces`;

/** Namespaces of customers' scripts. */
export const dispatchNamespace = product({
  name: "dispatch_namespace",
  group: "dispatch",
  scope: "account",
  schema: z.object({ name: z.string().min(1).max(255), trusted_workers: z.boolean().default(false) }),
  key: ({ name }) => name,
  async *read({ account }) {
    for (const { namespace_name, trusted_workers } of objectsIn(
      (await account.client.get(allOf(account))).result,
    ))
      yield { id: String(namespace_name), value: { name: namespace_name, trusted_workers } };
  },
  async write({ account }, { name, trusted_workers }, before) {
    if (before === undefined) await account.client.send("POST", allOf(account), { name });
    if (trusted_workers !== (before?.value.trusted_workers ?? false))
      await account.client.send("PATCH", allOf(account) + path`/${name}`, { trusted_workers });
  },
  async remove({ account }, { value: { name } }) {
    await account.client.send("DELETE", allOf(account) + path`/${name}`);
  },
});

/** Customers' scripts. */
export const dispatchScript = product({
  name: "dispatch_script",
  group: "dispatch",
  scope: "account",
  schema: z.object({ ...codeShape, namespace: z.string().min(1).max(255) }),
  key: ({ namespace, name }) => `${namespace}/${name}`,
  async *read(from) {
    const { account } = from;
    for (const { namespace_name } of objectsIn((await account.client.get(allOf(account))).result)) {
      const namespace = String(namespace_name);
      const all = allOf(account) + path`/${namespace}/scripts`;
      for (const { script } of objectsIn((await account.client.get(all)).result)) {
        const summary = (script ?? {}) as Record<string, unknown>;
        const at = all + path`/${String(summary["id"])}`;
        const code = await readCode(from, at, `${at}/content`, summary);
        yield {
          id: `${namespace}/${String(summary["id"])}`,
          value: { ...code, namespace, object_classes: [] },
        };
      }
    }
  },
  async write({ account }, { namespace, ...code }, before) {
    await writeCode(account, allOf(account) + path`/${namespace}/scripts/${code.name}`, code, before);
  },
  async remove({ account }, { value: { namespace, name } }) {
    await account.client.send("DELETE", `${allOf(account) + path`/${namespace}/scripts/${name}`}?force=true`);
  },
  comparable: comparableCode,
  reachable: reachableCode,
});
