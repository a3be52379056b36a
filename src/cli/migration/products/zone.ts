import { z } from "zod";
import { path } from "../account/path.ts";
import { product } from "../product.ts";

const schema = z.object({
  name: z.string().max(253),
  type: z.string().max(32),
  paused: z.boolean(),
});

/** The zones themselves. Their plans and name servers belong to the provider. */
export const zone = product({
  name: "zone",
  group: "zones",
  scope: "zone",
  schema,
  key: ({ name }) => name,
  async *read({ account, zone }) {
    const { result } = await account.client.get(path`/zones/${zone.id}`);
    const value = schema.parse(result);
    yield { id: zone.id, value };
  },
  async write({ account }, { name, type, paused }, before) {
    const { client, zones, accountId } = account;
    if (before === undefined) {
      const made = (await client.send("POST", "/zones", { account: { id: accountId }, name, type })) as {
        id: string;
      };
      zones.push({ id: made.id, name });
      await client.send("PUT", path`/zones/${made.id}/activation_check`);
    } else if (before.value.type !== type) {
      await client.send("PATCH", path`/zones/${account.zone(name).id}`, { type });
    }
    if (paused !== (before?.value.paused ?? false))
      await client.send("PATCH", path`/zones/${account.zone(name).id}`, { paused });
  },
});
