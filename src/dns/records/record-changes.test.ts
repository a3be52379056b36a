import { afterEach, beforeEach, expect, it } from "vitest";
import { nothingToReload } from "../../platform/storage/changes/listeners.ts";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { staticActivation } from "../../control/zones/activation.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { Zones } from "../../control/zones/zones.ts";
import { emptyBatch } from "./batch.ts";
import type { RecordChange } from "./record-changes.ts";
import type { DnsRecord } from "./record.ts";
import { DnsRecords } from "./records.ts";
import * as store from "./store.ts";

describeStorage("changes of records", (open) => {
  let storage: Storage;
  let records: DnsRecords;
  let zone: Zone;
  /** Work of the other listeners of storage, which runs first. */
  let delay: () => Promise<void>;
  let seen: RecordChange[];
  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    const account = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id });
    const zones = new Zones(storage, {
      nameServers: ["a.ns.example"],
      defaultPlan: "enterprise",
      activation: staticActivation,
    });
    delay = async () => {};
    storage.onChange(() => delay(), nothingToReload);
    records = new DnsRecords(storage);
    zone = await zones.create({ accountId: account.id, name: "example.com", type: "full" });
    seen = [];
    records.changes.onChange(async (change) => void seen.push(change));
  });
  afterEach(() => storage.close());

  const text = (name: string, content: string) => ({ type: "TXT", name, content: `"${content}"` });
  const at = (name: string): readonly DnsRecord[] | undefined =>
    seen.findLast(({ names }) => names.has(name))?.names.get(name);

  it("are notified with all records at a name, in the store's order, and with the zone's serial", async () => {
    const { posts } = await records.batch(zone, {
      ...emptyBatch,
      posts: ["one", "two", "three"].map((content) => text("a", content)),
    });
    await records.edit(zone, posts[0]!.id, { content: '"changed"', tags: ["x"] });
    expect(at("a.example.com")).toEqual(await store.listAtName(storage.read, zone.id, "a.example.com"));
    expect(seen.at(-1)!.serial).toBe(await records.serialOf(zone));
    await records.edit(zone, posts[0]!.id, { name: "b" });
    expect(seen.at(-1)!.names.get("a.example.com")).toHaveLength(2);
    expect(seen.at(-1)!.names.get("b.example.com")).toHaveLength(1);
    await records.delete(zone, posts[0]!.id);
    expect(at("b.example.com")).toEqual([]);
  });

  it("are notified before the writer continues, and never out of order", async () => {
    let waits = 0;
    delay = async () => {
      // Every second change is delayed until a later one has been notified.
      if (waits++ % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { id } = await records.create(zone, text("a", String(index)));
        expect(at("a.example.com")!.some((record) => record.id === id)).toBe(true);
        if (index % 3 > 0) return;
        await records.delete(zone, id);
        expect(at("a.example.com")!.some((record) => record.id === id)).toBe(false);
      }),
    );
    expect(at("a.example.com")).toEqual(await store.listAtName(storage.read, zone.id, "a.example.com"));
  });

  it("are notified again on request", async () => {
    const record = await records.create(zone, text("a", "one"));
    seen = [];
    await records.changes.notifyAgain(zone.id, ["a.example.com", "none.example.com"]);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ zoneId: zone.id, serial: 0 });
    expect(at("a.example.com")).toEqual([record]);
    expect(at("none.example.com")).toEqual([]);
  });
});
