import { z } from "zod";
import { pagesOf } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";

/** D1 databases, without their tables, because an import sends only GET requests and reading tables needs a POST. */
export const database = product({
  name: "d1_database",
  group: "d1",
  scope: "account",
  schema: z.object({ name: z.string().min(1).max(255) }),
  key: ({ name }) => name,
  async *read({ account, leaveOut }) {
    const all = await pagesOf(account.client, path`/accounts/${account.accountId}/d1/database`, 100);
    for (const { uuid, name } of all) yield { id: String(uuid), value: { name } };
    const why = "tables and rows: move each with `wrangler d1 export` and `wrangler d1 execute --file`";
    leaveOut(
      all.map(({ name }) => String(name)),
      why,
      "d1_data",
    );
  },
  async write({ account }, { name }) {
    await account.client.send("POST", path`/accounts/${account.accountId}/d1/database`, { name });
    account.forget("d1_database");
  },
  async remove({ account }, { id }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/d1/database/${id ?? ""}`);
    account.forget("d1_database");
  },
});
