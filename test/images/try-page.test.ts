import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startImagePlatform, type ImagePlatform } from "./platform.ts";

let platform: ImagePlatform;
beforeAll(async () => {
  platform = await startImagePlatform();
});
afterAll(() => platform.close(1000));

it("the dashboard has a page for trying transforms, without external resources", async () => {
  const page = await fetch(platform.ready.dashboard);
  expect([page.status, page.headers.get("content-type"), new URL(page.url).pathname]).toEqual([
    200,
    "text/html; charset=utf-8",
    "/dashboard/images",
  ]);
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
  const html = await page.text();
  const script = /<script src="([^"]+)"/.exec(html)![1]!;
  const code = await fetch(new URL(script, page.url));
  expect([code.status, code.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  for (const path of ["nothing", "images/x", "../package.json", "%2e%2e/package.json"])
    expect((await fetch(new URL(path, platform.ready.dashboard))).status).toBe(404);
});

it("offers only valid options", async () => {
  const code = readFileSync(new URL("../../dashboard/images.js", import.meta.url), "utf8");
  const names = [...code.matchAll(/^ {2}(\w+): [[{]/gm)].map((match) => match[1]!);
  expect(names.length).toBeGreaterThan(15);
  const { parseOptions } = await import("../../src/products/images/recipe/options.ts");
  for (const name of names) expect(() => parseOptions(`${name}=\u0000`)).toThrow(`for ${name}`);
});
