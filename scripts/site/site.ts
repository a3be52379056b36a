import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { contents, type Group } from "./contents.ts";
import { addressOf, isFolder, isPicture, filesIn, pages } from "./files.ts";
import { renderPage, type Page } from "./render.ts";
import { searchScript } from "./search.ts";
import { documentOf, fileDocument } from "./template.ts";

/** The site of the Markdown pages: its files by address. */
export function buildSite(): Map<string, string | Buffer> {
  const rendered = new Map(pages.map((file) => [file, renderPage(file)]));
  const groups = contents((file) => rendered.get(file)!.title);
  const site = new Map<string, string | Buffer>();
  for (const page of rendered.values()) site.set(addressOf(page.file), documentOf(page, groups));
  addLinkedFiles(site, [...rendered.values()], groups);
  site.set("search-index.js", searchScript([...rendered.values()]));
  for (const name of ["site.css", "site.js"]) site.set(name, readFileSync(new URL(name, import.meta.url)));
  const umd = createRequire(import.meta.url)
    .resolve("minisearch")
    .replace(/dist\/.*$/, "dist/umd/index.js");
  site.set("minisearch.js", readFileSync(umd));
  return site;
}

/** Adds the files of the project that pages link to, and those of the folders among them. */
function addLinkedFiles(
  site: Map<string, string | Buffer>,
  rendered: readonly Page[],
  groups: readonly Group[],
): void {
  const linked = new Set(rendered.flatMap(({ links }) => [...links]));
  for (const file of linked) {
    if (pages.includes(file)) continue;
    if (isFolder(file)) for (const each of filesIn(file)) linked.add(each);
    site.set(addressOf(file), isPicture(file) ? readFileSync(file) : fileDocument(file, groups));
  }
}
