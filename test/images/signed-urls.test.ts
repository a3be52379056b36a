import { createHmac } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { fourColors, pngOf } from "./fixtures.ts";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

/** Signed URLs: when they are required, and how long they are valid. */
let platform: ImagePlatform;

beforeAll(async () => {
  platform = await startImagePlatform();
});
afterAll(() => platform.close(1000));
afterEach(() => {
  vi.useRealTimers();
});

const key = "test-key";
const signature = (text: string, secret: string) => createHmac("sha256", secret).update(text).digest("hex");
const secretOf = async (name: string): Promise<string> => {
  const { keys } = (await platform.api("GET", "/v1/keys")).body.result as {
    keys: { name: string; value: string }[];
  };
  return keys.find((each) => each.name === name)!.value;
};
const path = (id: string, options: string) => `/${platform.ready.account_hash}/${id}/${options}`;
const get = async (pathAndQuery: string, init?: RequestInit) =>
  fetch(`${platform.ready.delivery}${pathAndQuery}`, init);
const signed = (pathAndQuery: string, secret: string) =>
  `${pathAndQuery}${pathAndQuery.includes("?") ? "&" : "?"}sig=${signature(pathAndQuery, secret)}`;

it("signs as the public service signs", async () => {
  const { sign, signedText } = await import("../../src/products/images/delivery/signature.ts");
  const vector = "/cheeW4oKsx5ljh8e8BoL2A/bc27a117-9509-446b-8c69-c81bfeac0a01/mobile";
  expect(sign(key, signedText(vector, "exp=1631289275"))).toBe(
    "00f00aff4321f575debb3f7563feb284b80cadf12ed930549c379b28fa8e3125",
  );
  expect(signedText(vector, "exp=1631289275&sig=abc")).toBe(`${vector}?exp=1631289275`);
});

it("shows private images until they expire", async () => {
  const id = await platform.store(await pngOf(fourColors(40, 40)), {
    requireSignedURLs: "true",
    id: "a/private 100%.png",
  });
  const secret = await secretOf("default");
  const now = Math.floor(Date.now() / 1000);
  vi.useFakeTimers({ toFake: ["Date"], now: now * 1000 });
  const place = path(encodeURIComponent(id).replaceAll("%2F", "/"), "w=20");
  const statusOf = async (url: string) => {
    const { status, headers } = await get(url);
    if (status === 403)
      expect([headers.get("cache-control"), headers.get("cf-resized")]).toEqual(["no-store", "err=9425"]);
    return status;
  };
  const good = signed(`${place}?exp=${now + 100}`, secret);
  expect(await statusOf(place)).toBe(403);
  expect(await statusOf(good)).toBe(200);
  expect((await get(good)).headers.get("cache-control")).toBe("private, max-age=100");
  expect((await get(good, { method: "HEAD" })).status).toBe(200);
  expect(await statusOf(signed(place, secret))).toBe(200); // without an expiry
  expect(await statusOf(signed(`${place}?exp=${now - 1}`, secret))).toBe(403);
  expect(await statusOf(signed(`${place}?exp=${now}`, secret))).toBe(403);
  expect(await statusOf(good.replace(/sig=(.*)$/, (_, sig: string) => `sig=${sig.toUpperCase()}`))).toBe(403);
  expect(await statusOf(good.replace(/.$/, (last) => (last === "0" ? "1" : "0")))).toBe(403);
  expect(await statusOf(good.replace("w=20", "w=21"))).toBe(403);
  expect(await statusOf(`${good}&extra=1`)).toBe(403);
  expect(await statusOf(good.replace(/\?(exp=\d+)&(sig=\w+)/, "?$2&$1"))).toBe(200);
  const two = signed(`${place}?a=1&exp=${now + 100}`, secret);
  expect(await statusOf(two)).toBe(200);
  expect(await statusOf(two.replace("a=1&exp", "exp").replace("&sig", "&a=1&sig"))).toBe(403);
  expect(await statusOf(signed(`${place}?exp=soon`, secret))).toBe(403);
  // A signed request does not make the result public.
  expect(await statusOf(place)).toBe(403);
  const name = `${new URL(platform.ready.delivery).pathname}${place}?exp=${now + 100}`;
  expect(await statusOf(signed(name, secret).slice(new URL(platform.ready.delivery).pathname.length))).toBe(
    200,
  );
});

it("accepts every existing key", async () => {
  const id = await platform.store(await pngOf(fourColors(41, 40)), { requireSignedURLs: "true" });
  const first = await secretOf("default");
  await platform.api("PUT", "/v1/keys/second");
  const second = await secretOf("second");
  const [old, fresh] = [signed(path(id, "public"), first), signed(path(id, "public"), second)];
  expect([(await get(old)).status, (await get(fresh)).status]).toEqual([200, 200]);
  await platform.api("DELETE", "/v1/keys/default");
  expect([(await get(old)).status, (await get(fresh)).status]).toEqual([403, 200]);
  const { keys } = (await platform.api("DELETE", "/v1/keys/second")).body.result as {
    keys: { name: string }[];
  };
  expect(keys.map(({ name }) => name)).toEqual(["default"]);
  expect(await secretOf("default")).not.toBe(first);
});

it("are not needed for variants that never require them, or once the image is public", async () => {
  const id = await platform.store(await pngOf(fourColors(42, 40)), { requireSignedURLs: "true" });
  const options = { fit: "contain", width: 10, height: 10, metadata: "none" };
  await platform.api("POST", "/v1/variants", { id: "open", options, neverRequireSignedURLs: true });
  expect((await get(path(id, "open"))).status).toBe(200);
  expect((await get(path(id, "w=11"))).status).toBe(403);
  const edited = await platform.api("PATCH", `/v1/${id}`, { requireSignedURLs: false });
  expect(edited.body.result).toMatchObject({ id, requireSignedURLs: false });
  expect((await get(path(id, "w=11"))).status).toBe(200);
});
