import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { turnsInWrites } from "../../../test/helpers/turns-in-writes.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import { ensurePepper } from "../../control/accounts/pepper.ts";
import { ensureOwner } from "../../control/members/owner.ts";
import { loadConfig } from "../../platform/config/config.ts";
import { FileBlobs } from "../../platform/storage/blobs.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Tokens } from "../../control/tokens/tokens.ts";
import { kvLimits } from "./limits.ts";
import { KvNamespaces } from "./kv.ts";

const noZones = { find: () => undefined };

async function namespaces(
  storage: Storage,
): Promise<{ kv: KvNamespaces; id: string; accountId: string; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-kv-"));
  onTestFinished(async () => {
    await storage.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const accounts = new Accounts(storage);
  const tokens = new Tokens(storage, accounts, await ensurePepper(storage), noZones);
  const { account } = await ensureOwner(
    loadConfig({ ephemeral: true }, {}, undefined).config,
    storage,
    accounts,
    tokens,
  );
  const kv = new KvNamespaces(storage, new FileBlobs(folder));
  const { id } = await kv.createNamespace(account.id, "one");
  return { kv, id, accountId: account.id, folder };
}

async function read(kv: KvNamespaces, id: string, key: string): Promise<Buffer | undefined> {
  const entry = await kv.get(id, key);
  if (entry === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  if (entry.content instanceof Uint8Array) chunks.push(entry.content);
  else for await (const chunk of entry.content as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
const keysOf = async (kv: KvNamespaces, id: string, options = {}): Promise<string[]> =>
  (await kv.list(id, options)).keys.map(({ name }) => name);

describeStorage("key-value namespaces", (open) => {
  it("store small and large values, and replace one kind with the other", async () => {
    const { kv, id } = await namespaces(await open());
    const large = Buffer.alloc(400_000, "ab");
    await kv.put(id, "k", Buffer.from([0, 255]));
    expect(await read(kv, id, "k")).toEqual(Buffer.from([0, 255]));
    await kv.put(id, "k", large);
    expect((await read(kv, id, "k"))?.equals(large)).toBe(true);
    await kv.put(id, "k", Buffer.from("small"));
    expect((await read(kv, id, "k"))?.toString()).toBe("small");
    await kv.delete(id, ["k", "never"]);
    expect(await read(kv, id, "k")).toBeUndefined();
  });

  it("let other work run while many values are stored", async () => {
    const storage = await open();
    const { kv, id } = await namespaces(storage);
    const content = { bytes: Buffer.from("v") };
    const entries = Array.from({ length: 3000 }, (_, i) => ({ key: `k${i}`, content, options: {} }));
    const hadTurn = turnsInWrites(storage);
    await kv.putReceived(id, entries);
    expect(hadTurn()).toBe(true);
  });

  it("leave no unreferenced files", async () => {
    const { kv, id, folder } = await namespaces(await open());
    const large = Buffer.alloc(400_000, "ab");
    await kv.put(id, "named", large);
    // Received but never stored, as when the process dies in between.
    await kv.receive(id, large);
    const files = (): string[] => readdirSync(join(folder, "kv", id));
    await kv.removeOrphans();
    expect(files()).toHaveLength(2);
    await kv.removeOrphans(Date.now() + 25 * 3_600_000);
    expect(files()).toHaveLength(1);
    expect((await read(kv, id, "named"))?.equals(large)).toBe(true);
  });

  it("list keys in byte order, from any key", async () => {
    const { kv, id } = await namespaces(await open());
    const keys = ["a", "B", "é", "a/1", "a/2", "a0", "🙂", "\u{ffff}", "a\u0000"];
    for (const key of keys) await kv.put(id, key, Buffer.from(""));
    const ordered = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(await keysOf(kv, id)).toEqual(ordered);
    expect(await keysOf(kv, id, { prefix: "a/" })).toEqual(["a/1", "a/2"]);
    const paged: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined;) {
      const page = await kv.list(id, { limit: 2, cursor });
      paged.push(...page.keys.map(({ name }) => name));
      ({ cursor } = page);
    }
    expect(paged).toEqual(ordered);
  });

  it("write many values, or none of them", async () => {
    const { kv, id } = await namespaces(await open());
    const content = { bytes: Buffer.from("v") };
    await kv.putReceived(id, [
      { key: "a", content, options: { metadata: { n: 1 } } },
      { key: "b", content, options: {} },
    ]);
    const bad = [
      { key: "c", content, options: {} },
      { key: "", content, options: {} },
    ];
    await expect(kv.putReceived(id, bad)).rejects.toThrow("Expected a key");
    expect(await kv.list(id)).toMatchObject({
      keys: [{ name: "a", metadata: { n: 1 } }, { name: "b" }],
      cursor: undefined,
    });
    const many = await kv.getMany(id, ["a", "a", "none"], 100);
    expect([...many]).toEqual([
      ["a", { text: "v", metadata: { n: 1 }, expiration: undefined }],
      ["none", null],
    ]);
    await expect(kv.getMany(id, ["a", "b"], 1)).rejects.toThrow("too large");
  });

  it("hide expired values, before and after their removal", async () => {
    const { kv, id } = await namespaces(await open());
    await kv.put(id, "brief", Buffer.alloc(300_000), { expirationTtl: 60 });
    await kv.put(id, "long", Buffer.from("v"), { expirationTtl: 600 });
    vi.setSystemTime(Date.now() + 61_000);
    onTestFinished(() => void vi.useRealTimers());
    expect(await read(kv, id, "brief")).toBeUndefined();
    expect(await keysOf(kv, id)).toEqual(["long"]);
    await kv.purge();
    expect(await keysOf(kv, id)).toEqual(["long"]);
  });

  it("belong to their account, have unique titles, and are deleted with their values", async () => {
    const { kv, id, accountId } = await namespaces(await open());
    await expect(kv.createNamespace(accountId, "one")).rejects.toThrow("already exists");
    expect(await kv.findNamespace("f".repeat(32), id)).toBeUndefined();
    const other = await kv.createNamespace(accountId, "two");
    await kv.put(other.id, "k", Buffer.alloc(300_000));
    await kv.deleteNamespace(other);
    expect(await read(kv, other.id, "k")).toBeUndefined();
    await expect(kv.renameNamespace(await kv.getNamespace(accountId, id), "three")).resolves.toMatchObject({
      title: "three",
    });
  });

  it("refuse values that are too large, however they are sent", async () => {
    const { kv, id } = await namespaces(await open());
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) yield Buffer.alloc(1024 * 1024);
    }
    await expect(kv.put(id, "k", endless())).rejects.toThrow(`at most ${kvLimits.valueBytesMax} bytes`);
    expect(await read(kv, id, "k")).toBeUndefined();
  });
});
