import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import sharp from "sharp";
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import type { DomainError } from "../../platform/domain-error.ts";
import { FileBlobs } from "../../platform/storage/blobs.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { ImageDirectory } from "./directory.ts";
import { cleanFilename, imageLimits, type Image } from "./image.ts";
import { Images } from "./images.ts";
import { parseMetadataFilters } from "./metadata-filter.ts";
import { ImageSettingsService } from "./settings/settings.ts";
import { Uploads } from "./uploads.ts";

/** The kinds of the errors of the rejected results, and others as text. */
const faults = (settled: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  settled.flatMap((each) =>
    each.status === "rejected" ? [(each.reason as Partial<DomainError>).kind ?? String(each.reason)] : [],
  );

/** Records, drafts, lists and settings, on both database engines. */
const folder = mkdtempSync(join(tmpdir(), "selvedge-image-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeStorage("images", (open) => {
  let storage: Storage;
  let uploads: Uploads;
  let images: Images;
  let directory: ImageDirectory;
  let settings: ImageSettingsService;
  let accountId: string;
  let jpeg: Buffer;
  const blobs = new FileBlobs(folder);
  const deleted: Image[] = [];

  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    accountId = (await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id })).id;
    await accounts.load();
    directory = new ImageDirectory(storage, accounts);
    uploads = new Uploads(storage, blobs, pino({ level: "silent" }), { avif: false, svg: false });
    images = new Images(storage, blobs, async (image) => void deleted.push(image));
    settings = new ImageSettingsService(storage, directory);
    jpeg ??= await sharp({ create: { width: 8, height: 6, channels: 3, background: "red" } })
      .jpeg()
      .toBuffer();
  });
  afterEach(() => storage.close());

  const input = (more: object = {}) => ({
    accountId,
    id: undefined,
    filename: "a.jpg",
    requireSignedUrls: false,
    meta: {},
    creator: null,
    ...more,
  });
  async function* bytes(): AsyncIterable<Uint8Array> {
    yield jpeg;
  }
  const add = async (more: object = {}): Promise<Image> =>
    uploads.create(input(more), await uploads.receive(accountId, bytes()));

  it("stores the fields of an upload and the properties of its bytes", async () => {
    const made = await add({ id: "own/id", meta: { a: { b: 1 } }, creator: "c", requireSignedUrls: true });
    expect(await images.find(accountId, "own/id")).toEqual(made);
    expect(made.content).toMatchObject({
      format: "jpeg",
      width: 8,
      height: 6,
      frames: 1,
      sizeBytes: jpeg.length,
    });
    await expect(add({ id: "own/id" })).rejects.toMatchObject({ kind: "images.exists" });
    await images.edit(accountId, "own/id", { meta: { z: 1 }, creator: null });
    expect(await images.find(accountId, "own/id")).toMatchObject({
      meta: { z: 1 },
      creator: null,
      requireSignedUrls: true,
    });
    await images.delete(accountId, "own/id");
    expect(await blobs.head(made.content!.blobKey)).toBeUndefined();
    await expect(images.delete(accountId, "own/id")).rejects.toMatchObject({ kind: "images.notFound" });
    expect(deleted.at(-1)?.id).toBe("own/id");
  });

  it("lists by page and by cursor, each image once despite inserts and deletes", async () => {
    const made: string[] = [];
    for (let i = 0; i < 7; i++)
      made.push(
        (await add({ meta: { n: i, tag: i % 2 === 0 ? "even" : "odd" }, creator: i < 2 ? "first" : null }))
          .id,
      );
    const page = await images.page(accountId, { page: 2, perPage: 3 });
    expect([page.images.length, page.totalCount]).toEqual([3, 7]);
    expect((await images.page(accountId, { page: 1, perPage: 9, creator: "first" })).images).toHaveLength(2);
    expect((await images.page(accountId, { page: 1, perPage: 9, creator: null })).images).toHaveLength(5);

    const seen: string[] = [];
    let cursor: { uploadedOn: number; id: string } | undefined;
    do {
      const { images: found, next } = await images.list(accountId, {
        order: "asc",
        filters: [],
        cursor,
        limit: 2,
      });
      seen.push(...found.map(({ id }) => id));
      if (cursor === undefined) await images.delete(accountId, found[0]!.id);
      cursor = next;
    } while (cursor !== undefined);
    expect(seen.toSorted()).toEqual(made.toSorted());
    const ids = async (query: Record<string, string>) =>
      (await images.list(accountId, { order: "desc", filters: parseMetadataFilters(query), limit: 100 }))
        .images.length;
    expect(await ids({ "meta.tag[eq]": "odd" })).toBe(3);
    expect(await ids({ "meta.n[gte:number]": "4" })).toBe(3);
    expect(await ids({ "meta.n[in:number]": "1|2|99" })).toBe(2);
    expect(await ids({ "meta.n[gt:number]": "5", "meta.n[lt:number]": "3" })).toBe(0);
    expect(await ids({ "meta.no.such[eq]": "x" })).toBe(0);
  });

  it("completes a draft once, and removes it after its expiry", async () => {
    const { image, token } = await uploads.createDraft(input(), Date.now() + 60_000);
    expect(image.content).toBeNull();
    expect(await images.count(accountId)).toBe(0);
    const draft = await uploads.draft(token);
    const contents = await Promise.all([1, 2, 3].map(() => uploads.receive(accountId, bytes())));
    const results = await Promise.allSettled(
      contents.map((content) => uploads.complete(draft, "b.jpg", content)),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const kept = (await images.find(accountId, image.id)).content!.blobKey;
    for (const { blobKey } of contents)
      expect((await blobs.head(blobKey)) !== undefined).toBe(blobKey === kept);
    await expect(uploads.draft(token)).rejects.toMatchObject({ kind: "images.exists" });

    const other = await uploads.createDraft(input(), Date.now() + 60_000);
    await uploads.sweep(Date.now() + 61_000);
    await expect(images.find(accountId, other.image.id)).rejects.toMatchObject({ kind: "images.notFound" });
    await expect(uploads.draft("nothing")).rejects.toMatchObject({ kind: "images.notFound" });
    expect((await images.find(accountId, image.id)).filename).toBe("b.jpg");
  });

  it("changes only the given fields, also during concurrent edits", async () => {
    const { image, token } = await uploads.createDraft(input({ meta: { a: 1 } }), Date.now() + 60_000);
    const draft = await uploads.draft(token);
    const content = await uploads.receive(accountId, bytes());
    const [, , completed] = await Promise.all([
      images.edit(accountId, image.id, { creator: "me" }),
      images.edit(accountId, image.id, { requireSignedUrls: true }),
      uploads.complete(draft, "b.jpg", content),
      images.edit(accountId, image.id, {}),
    ]);
    expect(await images.find(accountId, image.id)).toMatchObject({
      content: completed.content,
      meta: { a: 1 },
      requireSignedUrls: true,
      creator: "me",
    });
    expect(await blobs.head(content.blobKey)).toBeDefined();
    await expect(images.edit(accountId, "gone", { creator: "me" })).rejects.toMatchObject({
      kind: "images.notFound",
    });
  });

  it("accepts one of several concurrent creations of an id, and enforces the limits", async () => {
    const options = { fit: "cover", width: 1, height: 2, metadata: "none" } as const;
    const variant = (id: string, width: number) =>
      settings.createVariant(accountId, {
        id,
        options: { ...options, width },
        neverRequireSignedUrls: false,
      });
    const made = await Promise.allSettled([1, 2, 3, 4].map((width) => variant("v", width)));
    expect(faults(made)).toEqual(["images.exists", "images.exists", "images.exists"]);
    const won = made.find((each) => each.status === "fulfilled")!.value;
    expect(await settings.variant(accountId, "v")).toEqual(won);

    // `public` and `v` are two of the hundred.
    const many = Array.from({ length: imageLimits.variantsMax + 1 }, (_, i) => variant(`v${i}`, 1));
    expect(faults(await Promise.allSettled(many))).toEqual([
      "images.invalidUpload",
      "images.invalidUpload",
      "images.invalidUpload",
    ]);
    expect(await settings.variants(accountId)).toHaveLength(imageLimits.variantsMax);

    const names = Array.from({ length: imageLimits.keysMax + 2 }, (_, i) => `k${i}`);
    expect(faults(await Promise.allSettled(names.map((name) => settings.putKey(accountId, name))))).toEqual([
      "images.invalidUpload",
      "images.invalidUpload",
    ]);
    const same = await Promise.all([1, 2, 3].map(() => settings.putKey(accountId, "k0")));
    expect(new Set(same.map((keys) => keys.find(({ name }) => name === "k0")?.value)).size).toBe(1);

    const ids = await Promise.allSettled([
      add({ id: "own" }),
      add({ id: "own" }),
      uploads.createDraft(input({ id: "own" }), Date.now() + 60_000),
    ]);
    expect(faults(ids)).toEqual(["images.exists", "images.exists"]);
  });

  it("counts images that are created concurrently", async () => {
    const few = new Uploads(storage, blobs, pino({ level: "silent" }), { avif: false, svg: false }, 2);
    const made = await Promise.allSettled([1, 2, 3].map(() => few.createDraft(input(), Date.now() + 60_000)));
    expect(faults(made)).toEqual(["images.invalidUpload"]);
  });

  it("deletes once, refuses edits of deleted images, and leaves no account without a key", async () => {
    const options = { fit: "cover", width: 1, height: 2, metadata: "none" } as const;
    await settings.createVariant(accountId, { id: "v", options, neverRequireSignedUrls: true });
    // Concurrent edits keep each other's fields; either may be the last one to set the width.
    await Promise.all([
      settings.editVariant(accountId, "v", { options, neverRequireSignedUrls: false }),
      settings.editVariant(accountId, "v", { options: { ...options, width: 9 } }),
    ]);
    expect((await settings.variant(accountId, "v")).neverRequireSignedUrls).toBe(false);
    const gone = await Promise.allSettled([
      settings.deleteVariant(accountId, "v"),
      settings.deleteVariant(accountId, "v"),
      settings.editVariant(accountId, "v", { options }),
    ]);
    expect(faults(gone)).toContain("images.notFound");
    expect((await settings.variants(accountId)).map(({ id }) => id)).toEqual(["public"]);

    await Promise.all([settings.putKey(accountId, "a"), settings.putKey(accountId, "b")]);
    const [first, second] = await Promise.all([
      settings.deleteKey(accountId, "a"),
      settings.deleteKey(accountId, "b"),
    ]);
    expect(Math.max(first.length, second.length)).toBeGreaterThan(0);
    expect((await settings.keys(accountId)).map(({ name }) => name)).toEqual(["default"]);
    await settings.putKey(accountId, "c");
    const twice = await Promise.allSettled([1, 2].map(() => settings.deleteKey(accountId, "c")));
    expect(faults(twice)).toEqual(["images.notFound"]);
  });

  it("frees the id of an expired draft, and stores a focus only for the bytes that it belongs to", async () => {
    const { token } = await uploads.createDraft(input({ id: "own" }), Date.now() - 1);
    const before = await add({ id: "own" });
    await expect(uploads.draft(token)).rejects.toMatchObject({ kind: "images.notFound" });
    await images.delete(accountId, "own");
    await add({ id: "own" });
    await images.setFocus(before, { x: 0, y: 1 });
    expect((await images.find(accountId, "own")).focus).toBeNull();
    const now = await images.find(accountId, "own");
    await images.setFocus(now, { x: 1, y: 0 });
    expect((await images.find(accountId, "own")).focus).toEqual({ x: 1, y: 0 });
  });

  it("finds no image for an id that a database cannot store", async () => {
    for (const id of ["a\0b", "\ud800"]) {
      await expect(images.find(accountId, id)).rejects.toMatchObject({ kind: "images.notFound" });
      expect((await directory.image(accountId, id)).image).toBeUndefined();
    }
    expect((await add({ filename: cleanFilename("x/a\0\n.jpg"), creator: "é" })).filename).toBe("a.jpg");
  });

  it("removes unreferenced bytes after a day", async () => {
    const { blobKey } = await uploads.receive(accountId, bytes());
    const named = await add();
    await uploads.sweep();
    expect(await blobs.head(blobKey)).toBeDefined();
    await uploads.sweep(Date.now() + 25 * 3_600_000);
    expect(await blobs.head(blobKey)).toBeUndefined();
    expect(await blobs.head(named.content!.blobKey)).toBeDefined();
  });

  it("removes the bytes of a deleted account", async () => {
    const { content } = await add();
    await storage.write((trx) => trx.deleteFrom("accounts").where("id", "=", accountId).execute());
    await uploads.sweep();
    expect(await blobs.head(content!.blobKey)).toBeUndefined();
  });

  it("serves settings and images from memory until they change", async () => {
    const { id } = await add();
    const held = await directory.image(accountId, id);
    expect(await directory.image(accountId, id)).toBe(held);
    await images.edit(accountId, id, { creator: "c" });
    expect(held.isCurrent).toBe(false);
    expect((await directory.image(accountId, id)).image?.creator).toBe("c");

    const options = { fit: "cover", width: 1, height: 2, metadata: "none" } as const;
    await settings.createVariant(accountId, { id: "v", options, neverRequireSignedUrls: false });
    await expect(
      settings.createVariant(accountId, { id: "v", options, neverRequireSignedUrls: false }),
    ).rejects.toMatchObject({ kind: "images.exists" });
    const before = await directory.settings(accountId);
    await settings.editVariant(accountId, "v", { options: { ...options, width: 5 } });
    expect(before.isCurrent).toBe(false);
    expect((await settings.variant(accountId, "v")).options.width).toBe(5);
    expect((await settings.keys(accountId)).map(({ name }) => name)).toEqual(["default"]);
    await settings.putKey(accountId, "second");
    expect(await settings.deleteKey(accountId, "default")).toHaveLength(1);
    await settings.editConfig(accountId, { flexibleVariants: false });
    expect(await settings.config(accountId)).toMatchObject({
      flexibleVariants: false,
      browserTtlSeconds: null,
    });
  });
});
