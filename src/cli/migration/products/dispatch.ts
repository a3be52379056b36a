import { z } from "zod";
import { objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import type { AccountPlace } from "../account/place.ts";
import { product } from "../product.ts";
import { codeShape, comparableCode, reachableCode, readCode, writeCode } from "./script-code.ts";

const allOf = (place: AccountPlace): string => path`/accounts/${place.accountId}/workers/dispatch/namespaces`;

/** Namespaces of customers' scripts. */
export const dispatchNamespace = product({
  name: "dispatch_namespace",
  group: "dispatch",
  scope: "account",
  schema: z.object({ name: z.string().min(1).max(255), trusted_workers: z.boolean().default(false) }),
  key: ({ name }) => name,
  async *read({ place }) {
    for (const { namespace_name, trusted_workers } of objectsIn(
      (await place.client.get(allOf(place))).result,
    ))
      yield { id: String(namespace_name), value: { name: namespace_name, trusted_workers } };
  },
  async write({ place }, { name, trusted_workers }, before) {
    if (before === undefined) await place.client.send("POST", allOf(place), { name });
    if (trusted_workers !== (before?.value.trusted_workers ?? false))
      await place.client.send("PATCH", allOf(place) + path`/${name}`, { trusted_workers });
  },
  async remove({ place }, { value: { name } }) {
    await place.client.send("DELETE", allOf(place) + path`/${name}`);
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
    const { place } = from;
    for (const { namespace_name } of objectsIn((await place.client.get(allOf(place))).result)) {
      const namespace = String(namespace_name);
      const all = allOf(place) + path`/${namespace}/scripts`;
      for (const { script } of objectsIn((await place.client.get(all)).result)) {
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
  async write({ place }, { namespace, ...code }, before) {
    await writeCode(place, allOf(place) + path`/${namespace}/scripts/${code.name}`, code, before);
  },
  async remove({ place }, { value: { namespace, name } }) {
    await place.client.send("DELETE", `${allOf(place) + path`/${namespace}/scripts/${name}`}?force=true`);
  },
  comparable: comparableCode,
  reachable: reachableCode,
});
