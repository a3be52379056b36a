import { createHash } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import sharp from "sharp";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** No answer that a client does not receive leaves its file open. */
let hosting: Hosting;
let account: string;
const headers = { authorization: `Bearer ${ownerToken}` };
const text = "-- a comment\n".repeat(100_000) + "create table t (x);";

beforeAll(async () => {
  hosting = await startHosting();
  account = `${hosting.ready.api}/accounts/${hosting.account}`;
});
afterAll(() => hosting.close(1000));

/** The stored files that this process, and so the platform in it, has open. */
const openBlobs = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return path.includes("/blobs/") ? [path] : [];
    } catch {
      return []; // closed meanwhile
    }
  });
const expectNoneOpen = async (): Promise<void> => vi.waitFor(() => expect(openBlobs()).toEqual([]));

// oxlint-disable-next-line typescript/no-explicit-any
const send = async (path: string, body: object): Promise<any> => {
  const response = await fetch(`${account}${path}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, ...((await response.json()) as { result: unknown }) };
};

async function createDatabase(): Promise<string> {
  const { result } = await send("/d1/database", { name: `files-${Math.random().toString(36).slice(2)}` });
  return `/d1/database/${result.uuid}`;
}
async function upload(database: string): Promise<{ etag: string; filename: string }> {
  const etag = createHash("md5").update(text).digest("hex");
  const { result } = await send(`${database}/import`, { action: "init", etag });
  expect((await fetch(result.upload_url, { method: "PUT", body: text })).status).toBe(200);
  return { etag, filename: result.filename };
}

/** Addresses of answers that are streams of stored files. */
const streams: Record<string, () => Promise<string>> = {
  async "a large key-value value"() {
    const namespace = await hosting.createKv("files");
    const url = `${account}/storage/kv/namespaces/${namespace}/values/large`;
    await fetch(url, { method: "PUT", headers, body: Buffer.alloc(5_000_000) });
    return url;
  },
  async "an image's original"() {
    const background = { r: 1, g: 2, b: 3 };
    const bytes = await sharp({ create: { width: 9, height: 9, channels: 3, background } })
      .png()
      .toBuffer();
    const form = new FormData();
    form.set("file", new File([new Uint8Array(bytes)], "a.png"));
    const made = await fetch(`${account}/images/v1`, { method: "POST", headers, body: form });
    const { result } = (await made.json()) as { result: { id: string } };
    return `${account}/images/v1/${result.id}/blob`;
  },
  async "the export of a database"() {
    const database = await createDatabase();
    const { result } = await send(`${database}/export`, { output_format: "polling" });
    return result.result.signed_url as string;
  },
};

it.each(Object.keys(streams))("HEAD of %s leaves no file open", async (name) => {
  const url = await streams[name]!();
  const whole = await fetch(url, { headers });
  const bytes = await whole.arrayBuffer();
  for (let i = 0; i < 5; i++) {
    const { status, headers: answered } = await fetch(url, { method: "HEAD", headers });
    expect([status, answered.get("content-length")]).toEqual([200, String(bytes.byteLength)]);
  }
  await expectNoneOpen();
});

it("imports that are refused, because one is in progress, leave no file open", async () => {
  const database = await createDatabase();
  const file = await upload(database);
  const given = { action: "ingest", ...file };
  const answers = await Promise.all(Array.from({ length: 5 }, () => send(`${database}/import`, given)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  await expectNoneOpen();
});

it("a database's links are those of its account: the links of another do not replace them", async () => {
  const database = await createDatabase();
  const etag = createHash("md5").update(text).digest("hex");
  const init = async (): Promise<string> =>
    (await send(`${database}/import`, { action: "init", etag })).result.upload_url;
  const url = await init();
  expect(await init()).toBe(url);
  const uploads = await Promise.all(
    [1, 2, 3].map(async () => (await fetch(url, { method: "PUT", body: text })).status),
  );
  expect(uploads.toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
});
