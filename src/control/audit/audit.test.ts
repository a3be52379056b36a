import { expect, it, onTestFinished, vi } from "vitest";
import { pino } from "pino";
import { z } from "zod";
import { fc } from "../../../test/helpers/properties.ts";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { operationsFor, type Operation } from "../api/operation.ts";
import { Accounts } from "../accounts/accounts.ts";
import { boundedJson, sensitive, shapeOf, withoutSecrets } from "../api/sensitive.ts";
import type { Change, Storage } from "../../platform/storage/storage.ts";
import { setTime } from "../../platform/timers/clock.ts";
import { Audit } from "./audit.ts";
import type { AuditedCall } from "./entry.ts";
import { firstIdAt, newEntryId, timeOfEntry } from "./entry-id.ts";
import { networkKey, Refusals } from "./refusals.ts";
import { addresses, append, entries, list } from "./store.ts";

const edit: Operation = operationsFor<object>().operation({
  id: "thing_edit",
  method: "PUT",
  path: "/accounts/{account_id}/things/{thing_id}",
  summary: "Change a thing",
  access: { scope: "account", permission: "account_settings:edit" },
  result: z.null(),
  handle: async () => null,
}) as Operation;

const call = (): AuditedCall =>
  ({
    params: { thing_id: "t" },
    incoming: { headers: {}, url: "/accounts/a/things/t?secret=x" },
    requestId: "r",
    clientIp: "192.0.2.1",
    actor: undefined,
    account: { id: "a", name: "A" },
    zone: undefined,
  }) as unknown as AuditedCall;

describeStorage("the audit log", (open) => {
  async function make(): Promise<{ storage: Storage; audit: Audit }> {
    const storage = await open();
    const accounts = new Accounts(storage);
    const zones = { find: () => undefined };
    return { storage, audit: new Audit({ storage, accounts, zones, logger: pino({ level: "silent" }) }) };
  }
  const rows = (storage: Storage) => entries(storage.read).selectAll().orderBy("id").execute();
  const setMeta = (storage: Storage, key: string) =>
    storage.write((trx) => trx.insertInto("meta").values({ key, value: "" }).execute());
  const none = { before: async (): Promise<null> => null, statusOf: () => 500 };

  it("has an entry exactly if the change is there", async () => {
    const { storage, audit } = await make();
    await audit.perform(edit, call(), none, () => setMeta(storage, "once"));
    const failing = audit.perform(edit, call(), none, () =>
      storage.write(async (trx) => {
        await trx.insertInto("meta").values({ key: "never", value: "" }).execute();
        throw new Error("no");
      }),
    );
    await expect(failing).rejects.toThrow("no");
    const [entry, ...more] = await rows(storage);
    expect(more).toEqual([]);
    expect(entry).toMatchObject({
      operation: "thing_edit",
      resource_id: "t",
      raw_uri: "/accounts/a/things/t",
    });
    await storage.close();
  });

  it("has one entry for a call with several transactions, also if the first is repeated", async () => {
    const { storage, audit } = await make();
    await audit.perform(edit, call(), none, async () => {
      await setMeta(storage, "first");
      await setMeta(storage, "first").catch(() => {});
      await Promise.all([setMeta(storage, "second"), setMeta(storage, "third")]);
    });
    await audit.perform(edit, call(), none, () =>
      Promise.all([setMeta(storage, "x"), setMeta(storage, "y")]),
    );
    expect((await rows(storage)).length).toBe(2);
    await storage.close();
  });

  it("shows that a call failed after its first transaction", async () => {
    const { storage, audit } = await make();
    const failing = audit.perform(edit, call(), none, async () => {
      await setMeta(storage, "half");
      throw new Error("later");
    });
    await expect(failing).rejects.toThrow("later");
    expect(await rows(storage)).toMatchObject([{ action_result: "failure", raw_status_code: 500 }]);
    await storage.close();
  });

  it("names the system for changes without a call, also for work that outlives a call", async () => {
    const { storage, audit } = await make();
    const change = (): Promise<void> =>
      storage.write(async (_trx, changed) => changed({ kind: "certificate_pack", id: "p", parentId: "z" }));
    let later: Promise<void> | undefined;
    let start = (): void => {};
    const over = new Promise<void>((resolve) => (start = resolve));
    await audit.perform(edit, call(), none, async () => {
      later = over.then(change);
      await setMeta(storage, "call");
    });
    start();
    await later;
    expect(await rows(storage)).toMatchObject([
      { operation: "thing_edit" },
      { actor_type: "system", operation: "system_certificate_pack", resource_id: "p" },
    ]);
    await storage.write(async (_trx, changed) => changed({ kind: "dns_serial", id: "1", parentId: "z" }));
    expect((await rows(storage)).length).toBe(2);
    await storage.close();
  });

  it("names the account of a change whose path names none, and keeps names with NUL", async () => {
    const { storage, audit } = await make();
    const nowhere = { ...call(), account: undefined, params: { thing_id: "a\0b" } };
    await audit.perform(edit, nowhere, none, () =>
      storage.write(async (_trx, changed) => {
        changed({ kind: "zone", id: "z" });
        return { id: "z", accountId: "made" };
      }),
    );
    await audit.perform(edit, nowhere, none, () =>
      storage.write(async (_trx, changed) => changed({ kind: "account", id: "joined" })),
    );
    expect(await rows(storage)).toMatchObject([
      { account_id: "made", resource_id: "a\u{fffd}b" },
      { account_id: "joined" },
    ]);
    expect(nowhere.isAudited).toBe(true);
    const unread = { ...nowhere };
    await audit.perform(edit, unread, none, () => setMeta(storage, "nobody"));
    expect(unread.isAudited).toBe(false);
    await storage.close();
  });

  it("finds nothing if two filters exclude each other, and bounds the addresses that it compares", async () => {
    const { storage, audit } = await make();
    await audit.perform(edit, call(), none, () => setMeta(storage, "a"));
    const [entry] = await rows(storage);
    const search = {
      of: { account_id: "a" },
      sinceMs: undefined,
      beforeMs: undefined,
      direction: "asc",
      not: {},
    } as const;
    expect(await list(storage.read, { ...search, has: { id: [] } }, { limit: 10 })).toEqual([]);
    expect(await list(storage.read, { ...search, has: { id: [entry!.id] } }, { limit: 10 })).toHaveLength(1);
    expect(await addresses(storage.read, { ...search, has: {} }, 1)).toEqual(["192.0.2.1"]);
    expect(await addresses(storage.read, { ...search, has: {} }, 0)).toEqual([]);
    await storage.close();
  });

  it("shows entries before and after they have indexes, each once and in order", async () => {
    const { storage, audit } = await make();
    const count = 260;
    for (let i = 0; i < count; i++)
      await audit.perform(edit, { ...call(), requestId: `r${i}` }, none, () => setMeta(storage, `k${i}`));
    const search = { of: { account_id: "a" }, sinceMs: undefined, beforeMs: undefined, has: {}, not: {} };
    const requests = async (): Promise<unknown[]> => {
      const found = await list(storage.read, { ...search, direction: "asc" }, { limit: 1000 });
      return found.map(({ raw_cf_ray_id: request }) => request);
    };
    const expected = Array.from({ length: count }, (_, i) => `r${i}`);
    expect(await requests()).toEqual(expected);
    const failing = audit.perform(edit, { ...call(), requestId: "last" }, none, async () => {
      await setMeta(storage, "half");
      throw new Error("later");
    });
    await expect(failing).rejects.toThrow("later");
    await audit.close();
    expect(await requests()).toEqual([...expected, "last"]);
    const newest = await list(storage.read, { ...search, direction: "desc" }, { limit: 2 });
    expect(newest).toMatchObject([{ action_result: "failure" }, { action_result: "success" }]);
    expect(await storage.read.selectFrom("audit_log_tail").select("id").execute()).toEqual([]);
    await storage.close();
  });

  it("writes indexes also for calls that write nothing themselves, and all that a kill has left", async () => {
    const { storage, audit } = await make();
    const waiting = async (): Promise<number> =>
      (await storage.read.selectFrom("audit_log_tail").select("id").execute()).length;
    const ahead = { ...edit, audit: "ahead" } as const;
    for (let i = 0; i < 300; i++) await audit.perform(ahead, call(), none, async () => {});
    await vi.waitFor(async () => expect(await waiting()).toBeLessThan(250));
    const [entry] = await rows(storage);
    await storage.write(async (trx) => {
      for (let i = 0; i < 2500; i++) await append(trx, { ...entry!, id: `left${i}` });
    });
    await audit.removeOld(1);
    expect(await waiting()).toBe(0);
    expect((await rows(storage)).length).toBe(2800);
    await storage.close();
  });

  it("removes entries after their time, in batches", async () => {
    const { storage, audit } = await make();
    await audit.perform(edit, call(), none, () => setMeta(storage, "a"));
    const [entry] = await rows(storage);
    const old = { ...entry!, id: "" };
    await storage.write(async (trx) => {
      for (let i = 0; i < 1001; i++)
        await trx
          .insertInto("audit_logs")
          .values({ ...old, id: newEntryId(i + 1).replace(/^.{13}/, firstIdAt(i + 1).slice(0, 13)) })
          .execute();
    });
    await audit.removeOld(30);
    expect((await rows(storage)).map(({ id }) => id)).toEqual([entry!.id]);
    await audit.removeOld(1, Date.now() + 2 * 86_400_000);
    expect(await rows(storage)).toEqual([]);
    await storage.close();
  });
});

it("ids of entries grow, and contain the time", () => {
  const now = Date.now();
  const ids = Array.from({ length: 10_000 }, () => newEntryId(now));
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  expect(timeOfEntry(ids[0]!)).toBe(now);
  expect(firstIdAt(now) <= ids[0]! && firstIdAt(now - 1) < firstIdAt(now)).toBe(true);
  expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

it("an actor's refused calls are counted after the first in a minute", () => {
  let now = 100_000;
  const refusals = new Refusals(() => now);
  expect([refusals.take("a", false), refusals.take("a", false), refusals.take("a", false)]).toEqual([
    0,
    undefined,
    undefined,
  ]);
  expect(refusals.take("b", false)).toBe(0);
  now += 60_000;
  expect([refusals.take("a", false), refusals.take("b", false)]).toEqual([2, 0]);
  const strangers = Array.from({ length: 1000 }, (_, i) => refusals.take(`s${i}`, true));
  expect(strangers.filter((each) => each !== undefined).length).toBe(60);
});

it("values are shown as far as their schema declares them", () => {
  const schema = z.object({
    name: z.string(),
    secret: sensitive(z.string()).optional(),
    list: z.array(z.union([z.string(), z.strictObject({ inner: sensitive(z.string()), open: z.int() })])),
    data: z.json(),
    any: z.unknown(),
  });
  const value = {
    name: "x".repeat(1000),
    secret: "s",
    list: ["plain", { inner: "s", open: 1 }],
    data: { a: "s" },
    any: "s",
    more: "s",
  };
  expect(withoutSecrets(value, shapeOf(schema))).toEqual({
    name: `${"x".repeat(256)}…`,
    secret: "[not shown]",
    list: ["plain", { inner: "[not shown]", open: 1 }],
    data: "[not shown]",
    any: "[not shown]",
  });
  const wide = { a: "é".repeat(4000), b: "short" };
  expect(JSON.parse(boundedJson(wide, 500)!)).toEqual({ a: "[8002 bytes left out]", b: "short" });
  expect(boundedJson(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, i])), 100)).toMatch(
    /left_out/,
  );
});

it("JSON within a size is whole JSON, whose fields are left out from the longest on", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.oneof(fc.jsonValue(), fc.constant(undefined)), { maxKeys: 8 }),
      fc.integer({ min: 30, max: 300 }),
      (value, bytesMax) => {
        const text = boundedJson(value, bytesMax)!;
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytesMax);
        const whole = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
        const bytes = (name: string): number => Buffer.byteLength(JSON.stringify(whole[name]));
        const shown = JSON.parse(text) as Record<string, unknown>;
        if (Object.hasOwn(shown, "left_out_bytes") && !Object.hasOwn(whole, "left_out_bytes")) return;
        expect(Object.keys(shown)).toEqual(Object.keys(whole));
        const leftOut = Object.keys(whole).filter(
          (name) => shown[name] === `[${bytes(name)} bytes left out]`,
        );
        const kept = Object.keys(whole).filter((name) => !leftOut.includes(name));
        for (const name of kept) expect(shown[name]).toEqual(whole[name]);
        expect(Math.max(0, ...kept.map(bytes))).toBeLessThanOrEqual(
          Math.min(Infinity, ...leftOut.map(bytes)),
        );
      },
    ),
  );
});

it("an IPv6 network has one key, however its addresses are written", () => {
  for (const address of ["2001:db8::1", "2001:db8::1:2:3:4", "2001:db8:0:0:5::"])
    expect(networkKey(address)).toBe("2001:db8:0:0");
  expect(networkKey("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2");
  expect(["192.0.2.1", "::ffff:192.0.2.1", ""].map(networkKey)).toEqual([
    "192.0.2.1",
    "::ffff:192.0.2.1",
    "",
  ]);
});

// At the end, because ids never go back in time. For the same reason, each storage has a later time than the last.
let startMs = Date.now();
describeStorage("an entry of the audit log after a rolled-back transaction", (open) => {
  /** Fails after its entry was added. */
  const writeThatRollsBack = async (storage: Storage): Promise<void> => {
    const { writeHooks } = storage;
    const around: typeof writeHooks.around = async (run, changes) => {
      await writeHooks.around(run, changes);
      throw new Error("no commit");
    };
    storage.writeHooks = { ...writeHooks, around };
    // PostgreSQL refuses the text in its log of changes, which is the last statement.
    const change = { kind: "meta", id: "\0" } as unknown as Change;
    await storage
      .write(async (_trx, changed) => changed(change))
      .finally(() => (storage.writeHooks = writeHooks));
  };

  it("has the time of its own transaction", async () => {
    const storage = await open();
    const directory = { accounts: new Accounts(storage), zones: { find: () => undefined } };
    const audit = new Audit({ storage, ...directory, logger: pino({ level: "silent" }) });
    onTestFinished(() => setTime());
    startMs += 120_000;
    setTime(() => startMs);
    await audit.perform(edit, call(), { before: async () => null, statusOf: () => 500 }, async () => {
      await expect(writeThatRollsBack(storage)).rejects.toThrow();
      setTime(() => startMs + 60_000);
      await storage.write((trx) => trx.insertInto("meta").values({ key: "late", value: "" }).execute());
    });
    const [entry] = await entries(storage.read).select("id").execute();
    expect(timeOfEntry(entry!.id)).toBeGreaterThanOrEqual(startMs + 60_000);
    await storage.close();
  });
});
