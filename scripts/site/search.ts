import type { Options } from "minisearch";
import { addressOf } from "./files.ts";
import type { Page } from "./render.ts";

export interface SearchDocument {
  id: number;
  address: string;
  title: string;
  heading: string;
  text: string;
}

/** How the browser builds and asks the index: headings count more than text, and a word may be unfinished. */
export const searchOptions: Options<SearchDocument> = {
  fields: ["title", "heading", "text"],
  storeFields: ["address", "title", "heading", "text"],
  searchOptions: { boost: { title: 3, heading: 4 }, prefix: true, fuzzy: 0.2, combineWith: "AND" },
};

/** One document for each section of each page. */
export function searchDocuments(pages: readonly Page[]): SearchDocument[] {
  return pages
    .flatMap(({ file, title, sections }) =>
      sections.map(({ anchor, heading, text }) => ({
        address: `${addressOf(file)}${anchor === "" ? "" : `#${anchor}`}`,
        title,
        heading,
        text,
      })),
    )
    .map((document, id) => ({ id, ...document }));
}

/** The script that gives a page the documents. */
export const searchScript = (pages: readonly Page[]): string =>
  `globalThis.selvedgeSearch = ${JSON.stringify({ documents: searchDocuments(pages), options: searchOptions })};\n`;
