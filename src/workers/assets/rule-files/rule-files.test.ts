import { fc } from "../../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { readAssetConfig } from "../config.ts";
import { deploy, expectOutcomes, get } from "../testing.ts";

/** The rules of the files `_redirects` and `_headers`. */
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

  it("refuses a target that is not a valid URL", async () => {
    const _redirects = "/a https://[ 301\n/b/:x https://:x/ 301\n";
    const { warnings } = readAssetConfig({ _redirects });
    expect(warnings).toEqual([
      expect.stringContaining("line 1 is ignored, because https://[ is not a valid URL"),
    ]);
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

  it("a rule may drop a header of an earlier rule and set it again", async () => {
    const _headers = `
/_app/*
  Cache-Control: no-cache
/_app/immutable/*
  ! Cache-Control
  Cache-Control: public, immutable, max-age=31536000
`;
    const site = await deploy({ "/_app/immutable/a.js": "a" }, { _headers });
    const { headers } = await get(site, "/_app/immutable/a.js");
    expect(headers["cache-control"]).toBe("public, immutable, max-age=31536000");
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
  });

  it("any sequence of rules gives the same result as a Headers object", async () => {
    const content = "a{}".repeat(1000);
    const file = { "/a.css": content };
    const plain = (await get(await deploy(file), "/a.css")).headers;
    const name = fc.constantFrom("cache-control", "vary", "accept-encoding", "etag", "x-a", "public");
    const rule = fc.record({
      unset: fc.uniqueArray(name),
      set: fc.uniqueArray(fc.tuple(name, fc.constantFrom("x-a", "public", "etag", "1")), {
        selector: ([each]) => each,
      }),
    });
    const paths = ["/*", "/:file", "/a*", "https://www.example/*"];
    await fc.assert(
      fc.asyncProperty(fc.array(rule, { maxLength: paths.length }), async (rules) => {
        const lines = rules.flatMap(({ unset, set }, at) => [
          paths[at]!,
          ...unset.map((each) => `  ! ${each}`),
          ...set.map(([each, value]) => `  ${each}: ${value}`),
        ]);
        const expected = new Headers(plain);
        const known = new Set<string>();
        for (const { unset, set } of rules) {
          for (const each of unset) expected.delete(each);
          for (const [each, value] of set) {
            if (known.has(each)) expected.append(each, value);
            else expected.set(each, value);
            known.add(each);
          }
        }
        const site = await deploy(file, { _headers: lines.join("\n") });
        expect((await get(site, "/a.css")).headers).toEqual(Object.fromEntries(expected));
      }),
    );
  });
});
