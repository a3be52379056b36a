import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { FileBlobs } from "../storage/blobs.ts";
import { openStorage } from "../storage/storage.ts";
import type { Answer } from "./answer.ts";
import { AssetServer } from "./asset-server.ts";
import { Assets } from "./assets.ts";
import { readAssetConfig } from "./config.ts";
import type { Site } from "./site.ts";

/** How deployed assets answer requests. */
let assets: Assets;
let assetServer: AssetServer;
beforeAll(async () => {
  const storage = await openStorage("sqlite::memory:");
  const blobs = new FileBlobs(mkdtempSync(join(tmpdir(), "selvedge-test-")));
  assets = new Assets(storage, blobs, "secret");
  assetServer = new AssetServer(assets, blobs, { cacheBytes: 64 * 1024 * 1024 });
});

const hashOf = (content: string): string => createHash("sha256").update(content).digest("hex").slice(0, 32);
let sites = 0;
async function deploy(
  files: Record<string, string>,
  config: object = {},
  types: Record<string, string> = {},
): Promise<Site> {
  const owner = { accountId: "a".repeat(32), scriptName: `s${sites++}` };
  const entries = Object.entries(files).map(([path, content]) => ({
    path,
    hash: hashOf(content),
    sizeBytes: Buffer.byteLength(content),
  }));
  const session = await assets.createSession(owner, entries);
  let { jwt } = session;
  if (session.buckets.length > 0) {
    const claims = await assets.verifyUpload(jwt);
    const missing = new Set(session.buckets.flat());
    const completed = await assets.upload(claims, async (keep) => {
      for (const [path, content] of Object.entries(files))
        if (missing.has(hashOf(content)))
          await keep({
            hash: hashOf(content),
            contentType: types[path] ?? null,
            bytes: Buffer.from(content),
          });
    });
    jwt = completed!;
  }
  const manifestId = await assets.completeUpload(owner, jwt);
  return assetServer.site(owner.scriptName, manifestId, readAssetConfig(config).config);
}
interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}
async function get(
  site: Site,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Reply> {
  const answer: Answer = await assetServer.answer(site, { method, host: "www.example", path, headers });
  const list: Record<string, string> = {};
  for (let i = 0; i < answer.headers.length; i += 2) list[answer.headers[i]!] = answer.headers[i + 1]!;
  const { body } = answer;
  const bytes =
    body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.concat(await body.toArray());
  return { status: answer.status, headers: list, body: bytes };
}
/** "200 /file's content" or "307 location". */
async function outcome(site: Site, path: string): Promise<string> {
  const { status, headers, body } = await get(site, path);
  return `${status} ${headers["location"] ?? body.toString()}`.trim();
}

async function expectOutcomes(site: Site, expected: Record<string, string>): Promise<void> {
  const paths = Object.keys(expected);
  const outcomes = await Promise.all(paths.map(async (path) => [path, await outcome(site, path)]));
  expect(Object.fromEntries(outcomes)).toEqual(expected);
}

describe("html_handling", () => {
  const files = {
    "/index.html": "root",
    "/about.html": "about",
    "/blog/index.html": "blog",
    "/data.json": "{}",
  };
  const paths = [
    "/",
    "/index",
    "/index.html",
    "/about",
    "/about/",
    "/about.html",
    "/about/index.html",
    "/blog",
    "/blog/",
    "/blog/index",
    "/blog/index.html",
    "/blog.html",
    "/data.json",
    "/none",
  ];
  it.each([
    [
      "auto-trailing-slash",
      [
        "200 root",
        "307 /",
        "307 /",
        "200 about",
        "307 /about",
        "307 /about",
        "307 /about",
        "307 /blog/",
        "200 blog",
        "307 /blog/",
        "307 /blog/",
        "307 /blog/",
        "200 {}",
        "404",
      ],
    ],
    [
      "force-trailing-slash",
      [
        "200 root",
        "307 /",
        "307 /",
        "307 /about/",
        "200 about",
        "307 /about/",
        "307 /about/",
        "307 /blog/",
        "200 blog",
        "307 /blog/",
        "307 /blog/",
        "307 /blog/",
        "200 {}",
        "404",
      ],
    ],
    [
      "drop-trailing-slash",
      [
        "200 root",
        "307 /",
        "307 /",
        "200 about",
        "307 /about",
        "307 /about",
        "307 /about",
        "200 blog",
        "307 /blog",
        "307 /blog",
        "307 /blog",
        "307 /blog",
        "200 {}",
        "404",
      ],
    ],
    [
      "none",
      [
        "404",
        "404",
        "200 root",
        "404",
        "404",
        "200 about",
        "404",
        "404",
        "404",
        "404",
        "200 blog",
        "404",
        "200 {}",
        "404",
      ],
    ],
  ])("%s", async (html_handling, expected) => {
    const site = await deploy(files, { html_handling });
    await expectOutcomes(site, Object.fromEntries(paths.map((path, i) => [path, expected[i]!])));
  });

  it("keeps the query, gives a path one spelling, and never redirects to another host", async () => {
    const site = await deploy({ "/a b.txt": "space", "/café.html": "café", "/evil.com/index.html": "x" });
    await expectOutcomes(site, {
      "/a%20b.txt": "200 space",
      "/caf%C3%A9": "200 café",
      "/caf%c3%a9.html?x=1": "307 /caf%C3%A9?x=1",
      "//evil.com": "307 /evil.com/",
      "/\\evil.com": "307 /evil.com/",
      "/x/../a%20b.txt": "200 space",
      "/%zz": "404",
    });
  });
});

describe("not_found_handling", () => {
  const files = { "/index.html": "app", "/404.html": "root 404", "/docs/404.html": "docs 404" };
  it("serves the nearest 404 page", async () => {
    const site = await deploy(files, { not_found_handling: "404-page" });
    await expectOutcomes(site, {
      "/x": "404 root 404",
      "/docs/a/b": "404 docs 404",
    });
  });
  it("serves the application for every path", async () => {
    const site = await deploy(files, { not_found_handling: "single-page-application" });
    expect(await outcome(site, "/x/y")).toBe("200 app");
  });
  it("is for browsers that open a page, where there is a script", async () => {
    const site = await deploy(files, { not_found_handling: "single-page-application" });
    expect(site.isForScript("h", "/api", false)).toBe(true);
    expect(site.isForScript("h", "/api", true)).toBe(false);
    expect(site.isForScript("h", "/", false)).toBe(false);
    const plain = await deploy(files);
    expect(plain.isForScript("h", "/api", true)).toBe(true);
  });
});

describe("run_worker_first", () => {
  it("follows its rules, exceptions first", async () => {
    const site = await deploy(
      { "/api/doc.txt": "doc", "/index.html": "i" },
      { run_worker_first: ["/api/*", "!/api/doc*", "/x/*/y"] },
    );
    expect(
      ["/api/a", "/api/doc.txt", "/", "/none", "/x/1/2/y", "/x/y"].map((path) =>
        site.isForScript("h", path, false),
      ),
    ).toEqual([true, false, false, true, true, true]);
    expect(
      (await deploy({ "/index.html": "i" }, { run_worker_first: true })).isForScript("h", "/", false),
    ).toBe(true);
  });
  it.each([[["api/*"]], [["!/only"]], [["/a", "/a"]], [[`/${"x".repeat(100)}`]], [[]]])(
    "refuses %j",
    (run_worker_first) => {
      expect(() => readAssetConfig({ run_worker_first })).toThrow(/run_worker_first|item/);
    },
  );
});

describe("a file", () => {
  const text = "compress me ".repeat(500);
  it("has a type, a strong ETag, a length, and says that it may be kept", async () => {
    const site = await deploy(
      { "/a.js": "let a", "/b.bin": "bin", "/c": "none", "/d.html": "<p>" },
      {},
      { "/c": "" },
    );
    const js = await get(site, "/a.js");
    expect([js.status, js.headers]).toEqual([
      200,
      {
        "content-type": "text/javascript; charset=utf-8",
        etag: `"${hashOf("let a")}"`,
        "cache-control": "public, max-age=0, must-revalidate",
        "accept-ranges": "bytes",
        "cf-cache-status": "HIT",
        "content-length": "5",
      },
    ]);
    expect((await get(site, "/b.bin")).headers["content-type"]).toBe("application/octet-stream");
    expect((await get(site, "/c")).headers).not.toHaveProperty("content-type");
    const head = await get(site, "/a.js", {}, "HEAD");
    expect([head.headers["content-length"], head.body.length]).toEqual(["5", 0]);
    const post = await get(site, "/a.js", {}, "POST");
    expect([post.status, post.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    expect((await get(site, "/a.js", { authorization: "Basic x" })).headers).not.toHaveProperty(
      "cache-control",
    );
  });

  it("answers 304 to whoever has it, in any encoding", async () => {
    const site = await deploy({ "/t.txt": text });
    const hash = hashOf(text);
    for (const tag of [`"${hash}"`, `W/"${hash}"`, `"x", "${hash}"`, "*", `"${hash}-br"`])
      expect((await get(site, "/t.txt", { "if-none-match": tag })).status).toBe(304);
    expect((await get(site, "/t.txt", { "if-none-match": '"x"' })).status).toBe(200);
  });

  it("is compressed as the client likes it", async () => {
    const site = await deploy({ "/t.txt": text, "/small.txt": "small", "/p.png": text });
    const br = await get(site, "/t.txt", { "accept-encoding": "gzip, deflate, br, zstd" });
    expect(br.headers).toMatchObject({
      "content-encoding": "br",
      vary: "accept-encoding",
      etag: `"${hashOf(text)}-br"`,
      "content-length": String(br.body.length),
    });
    expect(brotliDecompressSync(br.body).toString()).toBe(text);
    const gz = await get(site, "/t.txt", { "accept-encoding": "br;q=0.5, gzip" });
    expect(gunzipSync(gz.body).toString()).toBe(text);
    for (const [path, accept] of [
      ["/t.txt", "identity"],
      ["/t.txt", "br;q=0"],
      ["/small.txt", "br"],
      ["/p.png", "br"],
    ])
      expect((await get(site, path!, { "accept-encoding": accept! })).headers).not.toHaveProperty(
        "content-encoding",
      );
    expect((await get(site, "/t.txt", { "accept-encoding": "br" }, "HEAD")).headers["content-length"]).toBe(
      String(br.body.length),
    );
  });

  it("is sent in parts", async () => {
    const site = await deploy({ "/digits.txt": "0123456789" });
    const part = async (range: string, more = {}): Promise<unknown[]> => {
      const { status, headers, body } = await get(site, "/digits.txt", { range, ...more });
      return [status, headers["content-range"], body.toString()];
    };
    expect(await part("bytes=2-4")).toEqual([206, "bytes 2-4/10", "234"]);
    expect(await part("bytes=7-")).toEqual([206, "bytes 7-9/10", "789"]);
    expect(await part("bytes=-3")).toEqual([206, "bytes 7-9/10", "789"]);
    expect(await part("bytes=5-99")).toEqual([206, "bytes 5-9/10", "56789"]);
    expect(await part("bytes=10-")).toEqual([416, "bytes */10", ""]);
    expect(await part("bytes=0-1,3-4")).toEqual([200, undefined, "0123456789"]);
    expect(await part("bytes=4-2")).toEqual([200, undefined, "0123456789"]);
    expect(await part("bytes=0-1", { "if-range": '"other"' })).toEqual([200, undefined, "0123456789"]);
    expect(await part("bytes=0-1", { "if-range": `"${hashOf("0123456789")}"` })).toEqual([
      206,
      "bytes 0-1/10",
      "01",
    ]);
  });

  it("may be large", async () => {
    const large = "x".repeat(3 * 1024 * 1024);
    const site = await deploy({ "/large.bin": large });
    expect((await get(site, "/large.bin")).body.length).toBe(large.length);
    expect((await get(site, "/large.bin", { range: "bytes=100-199" })).body.length).toBe(100);
  });
});

describe("_redirects", () => {
  it("redirects and rewrites, first rule first", async () => {
    const _redirects = `
# comment
/old /new 301
/old /ignored 302
/out https://example.com/there?x=1#top
/blog/:year/:slug /posts/:slug?y=:year 308
/any/* /files/:splat
/rewrite /data.json 200
/https/* https://other.example/:splat 307
nonsense
/bad /x 418
/:a/:a /x
/loop/* /loop/index.html
/proxy https://example.com 200
`;
    const { config, warnings } = readAssetConfig({ _redirects });
    expect(warnings.map((text) => /line (\d+)/.exec(text)![1])).toEqual(["4", "10", "11", "12", "13", "14"]);
    expect(config.redirects.fixed).toHaveLength(2);
    const site = await deploy({ "/index.html": "root", "/data.json": "{}" }, { _redirects });
    await expectOutcomes(site, {
      "/old?a=b": "301 /new?a=b",
      "/out?q=2": "302 https://example.com/there?x=1#top",
      "/blog/2026/hi": "308 /posts/hi?y=2026",
      "/any//evil.com": "302 /files/evil.com",
      "/rewrite": "200 {}",
      "/https/a/b": "307 https://other.example/a/b",
    });
  });

  it("leads nowhere that is no address", async () => {
    const _redirects = "/a https://[ 301\n/b/:x https://:x/ 301\n";
    const { warnings } = readAssetConfig({ _redirects });
    expect(warnings).toEqual([expect.stringContaining("line 1 is ignored, because https://[ is no address")]);
    const site = await deploy({ "/index.html": "root" }, { _redirects });
    await expectOutcomes(site, {
      "/a": "404",
      "/b/example.com": "301 https://example.com/",
      "/b/a%5Bb": "404",
    });
  });
});

describe("_headers", () => {
  it("sets, adds and drops headers by path and host", async () => {
    const _headers = `
/*
  X-Frame-Options: DENY
  X-Set: one
/static/*
  Cache-Control: public, max-age=31556952, immutable
  X-Set: two
  ! X-Frame-Options
https://www.example/*
  X-Host: yes
https://:name.other/*
  X-Name: :name
/static/:file
  X-File: :file
  no colon
`;
    const { warnings } = readAssetConfig({ _headers });
    expect(warnings).toEqual(['_headers: line 15 is ignored, because expected "Name: value" or "! Name"']);
    const site = await deploy({ "/static/a.css": "a{}", "/b.txt": "b" }, { _headers });
    const css = await get(site, "/static/a.css");
    expect(css.headers).toMatchObject({
      "cache-control": "public, max-age=31556952, immutable",
      "x-set": "one, two",
      "x-host": "yes",
      "x-file": "a.css",
    });
    expect(css.headers).not.toHaveProperty("x-frame-options");
    expect(css.headers).not.toHaveProperty("x-name");
    expect((await get(site, "/none")).headers["x-frame-options"]).toBe("DENY");
  });
});

it("a base path is where the site begins", async () => {
  const site = await deploy({ "/index.html": "root", "/a.html": "a" }, { base_path: "/docs" });
  expect(await outcome(site, "/docs")).toBe("307 /docs/");
  expect(await outcome(site, "/docs/")).toBe("200 root");
  expect(await outcome(site, "/docs/a")).toBe("200 a");
  expect(await outcome(site, "/docs/a.html")).toBe("307 /docs/a");
  expect(await outcome(site, "/a")).toBe("404");
});

it("refuses what it does not know in assets.config, by name", () => {
  expect(() => readAssetConfig({ html_handlin: "none" })).toThrow(
    /html_handlin.*did you mean "html_handling"/,
  );
  expect(() => readAssetConfig({ not_found_handling: "spa" })).toThrow(/not_found_handling/);
});
