import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readAssetConfig } from "./config.ts";
import { deploy, expectOutcomes, get, hashOf, outcome } from "./testing.ts";

/** How deployed assets answer requests. */
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
  it("is used only for page navigation if there is a script", async () => {
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
  it("has a type, a strong ETag, a length and Cache-Control", async () => {
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

  it("answers 304 to clients that have the file, in any encoding", async () => {
    const site = await deploy({ "/t.txt": text });
    const hash = hashOf(text);
    for (const tag of [`"${hash}"`, `W/"${hash}"`, `"x", "${hash}"`, "*", `"${hash}-br"`])
      expect((await get(site, "/t.txt", { "if-none-match": tag })).status).toBe(304);
    expect((await get(site, "/t.txt", { "if-none-match": '"x"' })).status).toBe(200);
  });

  it("is compressed with the client's preferred encoding", async () => {
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

it("serves the site below a base path", async () => {
  const site = await deploy({ "/index.html": "root", "/a.html": "a" }, { base_path: "/docs" });
  expect(await outcome(site, "/docs")).toBe("307 /docs/");
  expect(await outcome(site, "/docs/")).toBe("200 root");
  expect(await outcome(site, "/docs/a")).toBe("200 a");
  expect(await outcome(site, "/docs/a.html")).toBe("307 /docs/a");
  expect(await outcome(site, "/a")).toBe("404");
});

it("refuses unknown fields of assets.config by name", () => {
  expect(() => readAssetConfig({ html_handlin: "none" })).toThrow(
    /html_handlin.*did you mean "html_handling"/,
  );
  expect(() => readAssetConfig({ not_found_handling: "spa" })).toThrow(/not_found_handling/);
});
