import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { runInNewContext } from "node:vm";
import MiniSearch, { type Options } from "minisearch";
import { expect, it } from "vitest";
import { addressOf, pages } from "../scripts/site/files.ts";
import type { SearchDocument } from "../scripts/site/search.ts";
import { buildSite } from "../scripts/site/site.ts";

/** The site that `npm run docs` writes. */
const site = buildSite();
const documents = [...site].filter(([address]) => address.endsWith(".html"));
const textOf = (address: string): string => String(site.get(address));
const valuesOf = (html: string, attribute: string): string[] =>
  [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g"))].map(([, value]) =>
    value!.replaceAll("&amp;", "&"),
  );
/** The table of contents of a document. */
const contentsOf = (html: string): string => html.split('class="contents"')[1]!.split("<main>")[0]!;

it("every link and every picture leads to a file and an anchor of the site", () => {
  const faults: string[] = [];
  let count = 0;
  for (const [address, html] of documents) {
    const text = String(html);
    for (const target of [...valuesOf(text, "href"), ...valuesOf(text, "src")]) {
      if (/^[a-z]+:/.test(target)) continue;
      count += 1;
      const [path = "", anchor] = target.split("#");
      const to = path === "" ? address : normalize(join(dirname(address), path));
      if (!site.has(to)) faults.push(`${address}: ${target} names no file`);
      else if (anchor !== undefined && !valuesOf(textOf(to), "id").includes(anchor))
        faults.push(`${address}: ${target} names no anchor`);
    }
  }
  expect(count).toBeGreaterThan(1000);
  expect(faults).toEqual([]);
});

it("the table of contents names every page once", () => {
  const index = contentsOf(textOf("index.html"));
  expect(valuesOf(index, "href").toSorted()).toEqual(pages.map(addressOf).toSorted());
});

it("each page has its own text, and pages that code is linked from show the code", () => {
  expect(textOf("docs/snippets.html")).toContain('<h1 id="snippets">');
  expect(textOf("files/examples/operate/check.js.html")).toContain("A check for monitoring");
  const kept = readFileSync("docs/dns.md", "utf8").match(/^## .+$/gm)!.length;
  expect(textOf("docs/dns.html").match(/<h2 /g)).toHaveLength(kept);
});

it("the search finds sections by words of their headings and texts", () => {
  const context: { selvedgeSearch?: { documents: SearchDocument[]; options: Options<SearchDocument> } } = {};
  runInNewContext(textOf("search-index.js"), { globalThis: context });
  const { documents: sections, options } = context.selvedgeSearch!;
  const index = new MiniSearch<SearchDocument>(options);
  index.addAll(sections);
  const found = (query: string): unknown[] => index.search(query).map(({ address }) => address as unknown);
  const best = (query: string): unknown => found(query)[0];
  expect(best("periodic backups")).toBe("docs/backup.html#periodic-backups");
  expect(best("trusted proxies")).toBe("docs/request-cf.html#proxies-in-front-of-the-edge");
  // An unfinished word, and one with an error.
  expect(found("dead lett").slice(0, 3)).toContainEqual(expect.stringMatching(/^docs\/queues\.html/));
  expect(found("dnsec").slice(0, 3)).toContainEqual(expect.stringMatching(/^docs\/dns\.html/));
  expect(found("nothinghasthisword")).toEqual([]);
});
