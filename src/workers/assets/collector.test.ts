import { mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { FileBlobs } from "../../platform/storage/blobs.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Assets } from "./assets.ts";
import { AssetCollector } from "./collector.ts";

/** Removes assets that no version uses, and only those. */
const hourMs = 3_600_000;
const owner = { accountId: "a".repeat(32), scriptName: "site" };
const hashOf = (content: string): string => Buffer.from(content.repeat(32)).toString("hex").slice(0, 32);
const manifestOf = (contents: string) =>
  contents.split("").map((content) => ({ path: `/${content}`, hash: hashOf(content), sizeBytes: 1 }));

async function platform(storage: Storage) {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-collector-"));
  onTestFinished(async () => {
    await storage.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const blobs = new FileBlobs(folder);
  const assets = new Assets(storage, blobs, "secret");
  const collector = new AssetCollector(storage, blobs, { retentionMs: 24 * hourMs });
  const path = join(folder, "assets", owner.accountId);

  /** Uploads the files that a session needs. Returns the manifest's id once all are stored. */
  async function upload(contents: string, sent = contents): Promise<string> {
    const { jwt, buckets } = await assets.createSession(owner, manifestOf(contents));
    const asked = new Set(buckets.flat());
    if (asked.size === 0) return assets.completeUpload(owner, jwt);
    const claims = await assets.verifyUpload(jwt);
    const completion = await assets.upload(claims, async (keep) => {
      for (const content of sent)
        if (asked.has(hashOf(content)))
          await keep({ hash: hashOf(content), contentType: null, bytes: Buffer.from(content) });
    });
    return completion === undefined ? claims.manifestId : assets.completeUpload(owner, completion);
  }
  /** Creates a version that uses a manifest. Returns a function that deletes it. */
  async function use(manifestId: string): Promise<() => Promise<void>> {
    const [now, id] = [Date.now(), crypto.randomUUID()];
    const account = {
      id: owner.accountId,
      name: "a",
      type: "standard",
      settings: "{}",
      has_billing: 0 as const,
    };
    await storage.read
      .insertInto("accounts")
      .values({ ...account, created_on: now })
      .onConflict((c) => c.doNothing())
      .execute();
    const script = {
      id,
      account_id: owner.accountId,
      namespace_id: null,
      owner_id: owner.accountId,
      name: id,
    };
    const rest = {
      tags: "[]",
      settings: "{}",
      live_versions: "[]",
      version_count: 1,
      subdomain_enabled: 0 as const,
    };
    await storage.read
      .insertInto("scripts")
      .values({ ...script, ...rest, previews_enabled: 0, created_on: now, modified_on: now })
      .execute();
    await storage.read
      .insertInto("script_versions")
      .values({
        id,
        script_id: id,
        number: 1,
        code_id: id,
        content: "{}",
        manifest_id: manifestId,
        created_on: now,
      })
      .execute();
    return async () => void (await storage.read.deleteFrom("scripts").where("id", "=", id).execute());
  }
  async function age(): Promise<void> {
    const aged = { used_on: Date.now() - 100 * hourMs };
    await storage.read.updateTable("asset_manifests").set(aged).execute();
    await storage.read.updateTable("asset_files").set(aged).execute();
  }
  const held = (): string =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => Buffer.from(name.slice(0, 2), "hex").toString())
      .toSorted()
      .join("");
  const collect = async (afterHours: number) => collector.collect(Date.now() + afterHours * hourMs);
  return { assets, blobs, path, upload, use, age, held, collect };
}

describeStorage("unused assets", (open) => {
  it("are removed after their time, except for those that a version uses", async () => {
    const { assets, upload, use, held, collect } = await platform(await open());
    const [first, second] = [await upload("abc"), await upload("bcd")];
    const [forgetFirst, forgetSecond] = [await use(first), await use(second)];
    expect(await collect(1000)).toBe(0);
    await forgetFirst();
    expect(await collect(23)).toBe(0);
    expect(await collect(25)).toBe(1);
    expect(held()).toBe("bcd");
    expect(await assets.load(first)).toBeUndefined();
    expect([...(await assets.load(second))!.files.keys()].toSorted()).toEqual(["b", "c", "d"].map(hashOf));
    await forgetSecond();
    expect(await collect(25)).toBe(3);
    expect(held()).toBe("");
    // A removed file is requested again.
    expect((await assets.createSession(owner, manifestOf("abc"))).buckets.flat()).toHaveLength(3);
  });

  it("stay while a session may rely on them", async () => {
    const { assets, upload, age, held, collect } = await platform(await open());
    await upload("ab");
    await age();
    // The answer to the session says that "a" is stored.
    expect((await assets.createSession(owner, manifestOf("ac"))).buckets).toEqual([[hashOf("c")]]);
    expect(await collect(0)).toBe(1);
    expect(held()).toBe("a");
    expect(await upload("ac")).toBeTypeOf("string");
    expect(held()).toBe("ac");
  });

  it("are removed if the upload was never completed, and its token is then refused", async () => {
    const { assets, upload, held, collect } = await platform(await open());
    const { jwt } = await assets.createSession(owner, manifestOf("ab"));
    await upload("ab", "a");
    expect(held()).toBe("a");
    expect(await collect(25)).toBe(1);
    const claims = await assets.verifyUpload(jwt);
    const late = assets.upload(claims, async (keep) =>
      keep({ hash: hashOf("b"), contentType: null, bytes: Buffer.from("b") }),
    );
    await expect(late).rejects.toMatchObject({ kind: "assets.badToken" });
    expect(held()).toBe("");
    // The cached state of the first session is not mistaken for stored files.
    await assets.createSession(owner, manifestOf("ab"));
    const again = await assets.upload(claims, async (keep) =>
      keep({ hash: hashOf("b"), contentType: null, bytes: Buffer.from("b") }),
    );
    expect(again).toBeUndefined();
  });

  it("are removed if a process died before it wrote their row", async () => {
    const { blobs, path, upload, use, held, collect } = await platform(await open());
    await use(await upload("a"));
    const orphan = `${hashOf("b").slice(0, 2)}/${hashOf("b")}-${crypto.randomUUID()}`;
    await blobs.put(`assets/${owner.accountId}/${orphan}`, Buffer.from("b"));
    expect(await collect(1)).toBe(0);
    expect(held()).toBe("ab");
    const longAgo = Date.now() / 1000 - 25 * 3600;
    utimesSync(join(path, orphan), longAgo, longAgo);
    expect(await collect(0)).toBe(1);
    expect(held()).toBe("a");
  });

  it("are removed once by concurrent collectors, while sessions begin", async () => {
    const { assets, upload, age, held, collect } = await platform(await open());
    const contents = "abcdefghijklmnopqrstuvwxyz";
    await upload(contents);
    await age();
    const [, , , session] = await Promise.all([
      collect(0),
      collect(0),
      collect(0),
      assets.createSession(owner, manifestOf(contents)),
    ]);
    // Either the session needed no file and all are stored, or it requests the missing ones.
    const asked = new Set(session.buckets.flat());
    expect(
      held()
        .split("")
        .filter((content) => asked.has(hashOf(content))),
    ).toEqual([]);
    expect(held().length + asked.size).toBe(contents.length);
  });
});
