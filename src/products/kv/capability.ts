import { capability } from "../../capability.ts";
import { blobs, storage } from "../../platform/capability.ts";
import { kvBinding } from "./binding.ts";
import { KvNamespaces } from "./kv.ts";
import { tidyKv } from "./tidy.ts";
import { shown, kvAtEdges } from "./at-edges.ts";
import { declaration } from "./declaration.ts";
import { kvErrors } from "./errors.ts";
import { kvErrorCodes } from "./api-errors.ts";

export const kv = capability({
  name: "KV",
  declares: declaration,
  atEdges: kvAtEdges,
  needs: [storage, blobs],
  create: (needed) => ({ kv: new KvNamespaces(needed.storage, needed.blobs) }),
  operations: async () => (await import("./api.ts")).kvOperations,
  errors: [{ title: "Key-value namespaces", errors: kvErrors, codes: kvErrorCodes }],
  idParameters: ["namespace_id"],
  bindings: (services) => ({
    kv_namespace: {
      ...shown,
      handler: kvBinding(services.kv),
      exists: async (accountId, id) => (await services.kv.findNamespace(accountId, id)) !== undefined,
    },
  }),
  async expire(services) {
    await services.kv.purge();
    return { kv: services.kv.expired };
  },
  run: (services) => tidyKv(services.kv, services.logger),
});
