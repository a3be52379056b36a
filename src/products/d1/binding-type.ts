import { bindingType, idText } from "../../workers/binding-type.ts";

/** A binding to a D1 database. */
export const d1Type = bindingType({
  // Older clients send `database_id`.
  fields: { id: idText },
  async check({ id }, { accountId, resources }) {
    if (await resources.exists("d1", accountId, id)) return undefined;
    return `the D1 database "${id}", which does not exist on this account`;
  },
});
