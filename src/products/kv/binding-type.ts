import { bindingType, idText } from "../../workers/binding-type.ts";

/** A binding to a KV namespace. */
export const kvNamespaceType = bindingType({
  fields: { namespace_id: idText },
  async check({ namespace_id }, { accountId, resources }) {
    if (await resources.exists("kv_namespace", accountId, namespace_id)) return undefined;
    return `the KV namespace "${namespace_id}", which does not exist on this account`;
  },
});
