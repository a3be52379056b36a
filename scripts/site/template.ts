import type { Group } from "./contents.ts";
import { addressOf, filesIn, isFolder, pathBetween } from "./files.ts";
import { escape, type Page } from "./render.ts";
import { readFileSync } from "node:fs";

/** The whole HTML document of a page. All its references are relative, so the site works under any path. */
export function documentOf(page: Page, groups: readonly Group[]): string {
  const address = addressOf(page.file);
  const isLong = page.sections.filter(({ depth }) => depth === 2).length > 1;
  return frame(address, page.title, navigation(address, groups), isLong ? outline(page) : "", page.html);
}

/** A page that shows a file of the project, or lists a folder. */
export function fileDocument(file: string, groups: readonly Group[]): string {
  const address = addressOf(file);
  const body = isFolder(file)
    ? `<ul>${filesIn(file)
        .map((each) => `<li>${link(address, each, each.slice(file.length + 1))}</li>`)
        .join("\n")}</ul>`
    : `<pre><code>${escape(readFileSync(file, "utf8"))}</code></pre>`;
  return frame(address, file, navigation(address, groups), "", `<h1>${escape(file)}</h1>\n${body}`);
}

const link = (from: string, file: string, text: string): string =>
  `<a href="${escape(pathBetween(from, addressOf(file)))}">${escape(text)}</a>`;

function navigation(address: string, groups: readonly Group[]): string {
  return groups
    .map(({ title, pages }) => {
      const items = pages.map((page) => {
        const isThis = addressOf(page.file) === address;
        const current = isThis ? ' aria-current="page"' : "";
        return `<li${current}>${link(address, page.file, page.title)}</li>`;
      });
      const isOpen = pages.some(({ file }) => addressOf(file) === address) || title === "Start";
      return `<details${isOpen ? " open" : ""}><summary>${escape(title)}</summary><ul>${items.join("")}</ul></details>`;
    })
    .join("\n");
}

function outline({ sections }: Page): string {
  const items = sections
    .filter(({ depth }) => depth === 2)
    .map(({ anchor, heading }) => `<li><a href="#${escape(anchor)}">${escape(heading)}</a></li>`);
  return `<nav class="outline" aria-label="On this page"><ul>${items.join("")}</ul></nav>`;
}

function frame(address: string, title: string, contents: string, onPage: string, body: string): string {
  const root = pathBetween(address, ".") === "." ? "./" : `${pathBetween(address, ".")}/`;
  return `<!doctype html>
<html lang="en" data-root="${root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} · Selvedge</title>
<link rel="stylesheet" href="${root}site.css">
<script src="${root}minisearch.js" defer></script>
<script src="${root}site.js" defer></script>
</head>
<body>
<header>
<a class="name" href="${root}index.html">Selvedge</a>
<search><input type="search" placeholder="Search" aria-label="Search" autocomplete="off"><ol hidden></ol></search>
</header>
<nav class="contents" aria-label="Pages">${contents}</nav>
<main>${onPage}
${body}</main>
</body>
</html>
`;
}
