import { afterAll, beforeAll, expect, it } from "vitest";
import { accountHash } from "../../src/products/images/directory.ts";
import { ownerToken } from "../helpers/server.ts";
import { jpegOf, scenery } from "./fixtures.ts";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** The engine is shared: the visitors of one account must not keep it from the others. */
let platform: ImagePlatform;
beforeAll(async () => (platform = await startImagePlatform({ imageSlots: 1 })));
afterAll(async () => platform?.close(1000));

async function otherAccount(): Promise<string> {
  const { body } = await platform.call("POST", "/accounts", { name: "other" });
  return (body.result as { id: string }).id;
}

async function store(account: string, picture: Buffer): Promise<string> {
  const form = new FormData();
  form.set("file", new File([new Uint8Array(picture)], "picture.jpg"));
  const headers = { authorization: `Bearer ${ownerToken}` };
  const url = `${platform.ready.api}/accounts/${account}/images/v1`;
  const answer = (await (await fetch(url, { method: "POST", headers, body: form })).json()) as {
    result: { id: string };
  };
  return answer.result.id;
}

it("a queue full of one account's transformations leaves places and turns to another one", async () => {
  const busy = await platform.store(await jpegOf(scenery(1600, 1200)));
  const account = await otherAccount();
  const calm = await store(account, await jpegOf(scenery(400, 300)));
  const { engine } = platform.services.images;
  const leaving = new AbortController();
  const status = async (hash: string, path: string): Promise<number> =>
    (await fetch(`${platform.ready.delivery}/${hash}/${path}`, { signal: leaving.signal })).status;
  // Twice as many clients as may wait, which ask again and again, each time for another result.
  let refused = 0;
  const client = async (_: unknown, i: number): Promise<void> => {
    for (let quality = 20; quality < 100; quality++)
      if ((await status(platform.ready.account_hash, `${busy}/w=${1500 - i},f=avif,q=${quality}`)) === 429)
        refused++;
  };
  const ended = Promise.allSettled(Array.from({ length: 64 }, client));
  await expect.poll(() => refused).toBeGreaterThan(0);
  for (const width of [50, 60, 70, 80, 90])
    expect(await status(accountHash(account), `${calm}/w=${width},f=webp`)).toBe(200);
  expect(engine.load.waiting).toBeGreaterThan(0);
  leaving.abort();
  await ended;
  await expect.poll(() => engine.load).toEqual({ running: 0, waiting: 0 });
});
