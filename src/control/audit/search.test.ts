import { expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { newEntryId } from "./entry-id.ts";
import { addresses, first, page } from "./search.ts";
import { insert, type AuditEntry, type Search } from "./store.ts";

const limits = { step: 3, max: 9 };
const search: Search = {
  of: { account_id: "a" },
  sinceMs: undefined,
  beforeMs: undefined,
  direction: "asc",
  has: {},
  not: {},
};

describeStorage("a search of the audit log", (open) => {
  /** Inserts entries of two accounts in turn. Entry `i` of the first has the resource id `i` and an address from `i % 5`. */
  async function fill(count: number): Promise<{ storage: Storage; ids: string[] }> {
    const storage = await open();
    const ids = Array.from({ length: count }, () => newEntryId());
    await storage.write(async (trx) => {
      for (const [i, id] of ids.entries()) {
        await insert(trx, entry(id, "a", i));
        await insert(trx, entry(newEntryId(), "b", i));
      }
    });
    return { storage, ids };
  }

  it("finds the same as without steps, in both directions", async () => {
    const { storage, ids } = await fill(8);
    for (const direction of ["asc", "desc"] as const) {
      const every = direction === "asc" ? ids : ids.toReversed();
      const odd = { resource_type: ["1"] };
      const wanted = every.filter((id) => ids.indexOf(id) % 2 === 1);
      const found = await first(storage.read, { ...search, direction, has: odd }, 3, limits);
      expect(found.rows.map(({ id }) => id)).toEqual(wanted.slice(0, 3));
      const rest = await first(
        storage.read,
        { ...search, direction, has: odd, after: found.after },
        3,
        limits,
      );
      expect(rest.rows.map(({ id }) => id)).toEqual(wanted.slice(3));
      expect(rest.after).toBeUndefined();
      for (const offset of [0, 1, 2, 5]) {
        const part = await page(
          storage.read,
          { ...search, direction, has: odd },
          { limit: 2, offset },
          limits,
        );
        expect(part.rows.map(({ id }) => id)).toEqual(wanted.slice(offset, offset + 2));
        expect(part.count).toBe(4);
      }
    }
    expect(await addresses(storage.read, search, 100, limits)).toHaveLength(5);
    expect(await addresses(storage.read, search, 2, limits)).toHaveLength(2);
    await storage.close();
  });

  it("examines a limited number of entries, goes on after them, and says how to see others", async () => {
    const { storage, ids } = await fill(20);
    const seventh = { ...search, has: { resource_id: ["7"] } };
    const found = await first(storage.read, seventh, 5, limits);
    expect(found.rows.map(({ id }) => id)).toEqual([ids[7]]);
    expect(found.after).toBe(ids[8]);
    const last = { ...search, has: { resource_id: ["19"] } };
    await expect(first(storage.read, last, 5, limits)).rejects.toThrow(
      /^Expected since and before with at most 9 entries between them for these filters, such as before=/,
    );
    await expect(page(storage.read, last, { limit: 5, offset: 0 }, limits)).rejects.toThrow(/at most 9/);
    await expect(addresses(storage.read, search, 100, limits)).rejects.toThrow(/at most 9/);
    const after = { ...last, after: ids[12] };
    expect((await first(storage.read, after, 5, limits)).rows.map(({ id }) => id)).toEqual([ids[19]]);
    // The key of the table, and entries without a filter, need no steps.
    const byId = { ...search, has: { id: [ids[19]!] } };
    expect((await first(storage.read, byId, 5, limits)).rows).toHaveLength(1);
    expect((await page(storage.read, search, { limit: 5, offset: 18 }, limits)).count).toBe(20);
    await storage.close();
  });
});

const entry = (id: string, account: string, i: number): AuditEntry => ({
  id,
  account_id: account,
  account_name: null,
  user_id: null,
  zone_id: null,
  zone_name: null,
  action_result: "success",
  action_type: "update",
  operation: "thing_edit",
  description: "Change a thing",
  actor_context: null,
  actor_email: null,
  actor_id: null,
  actor_ip_address: `192.0.2.${i % 5}`,
  actor_token_id: null,
  actor_token_name: null,
  actor_type: "user",
  raw_cf_ray_id: null,
  raw_method: null,
  raw_status_code: 200,
  raw_uri: null,
  raw_user_agent: null,
  resource_id: String(i),
  resource_product: "things",
  resource_scope: "accounts",
  resource_type: String(i % 2),
  request: null,
  before: null,
});
