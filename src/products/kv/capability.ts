import { capability } from "../../capability.ts";
import { blobs, storage } from "../../platform/capability.ts";
import { bindingsInMain, type ShownBinding } from "../../workers/bindings-in-main.ts";
import { kvOperations } from "./api.ts";
import { kvBinding, kvNamespaceType } from "./binding.ts";
import { KvNamespaces } from "./kv.ts";
import { tidyKv } from "./tidy.ts";
import { declaration } from "./declaration.ts";
import { kvErrors } from "./errors.ts";
import { kvErrorCodes } from "./api-errors.ts";

const shown: ShownBinding<"kv_namespace"> = {
  type: kvNamespaceType,
  isolate: { module: "products/kv/worker/binding.js", factory: "kvNamespace", className: "KvNamespace" },
};

export const kv = capability({
  name: "KV",
  declares: declaration,
  atEdges: bindingsInMain("kv_namespace", shown),
  needs: [storage, blobs],
  create: (needed) => ({ kv: new KvNamespaces(needed.storage, needed.blobs) }),
  operations: kvOperations,
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
