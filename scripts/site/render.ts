import { readFileSync } from "node:fs";
import { Marked, type Tokens } from "marked";
import { anchorMaker } from "./anchors.ts";
import { addressOf, pathBetween, targetOf } from "./files.ts";

export interface Section {
  /** Empty for the text before the second heading. */
  anchor: string;
  heading: string;
  depth: number;
  /** Its text without markup, for the search. */
  text: string;
}
export interface Page {
  file: string;
  title: string;
  html: string;
  sections: Section[];
  /** The files and folders of the project that it links to or shows. */
  links: Set<string>;
}

/** Renders a Markdown file. Links to files of the project lead to their addresses on the site. */
export function renderPage(file: string): Page {
  const page: Page = { file, title: file, html: "", sections: [], links: new Set() };
  const anchorOf = anchorMaker();
  const isExternal = (href: string): boolean => /^[a-z]+:/.test(href);
  const hrefOf = (href: string): string => {
    if (isExternal(href)) return href;
    const [path = "", anchor] = href.split("#");
    const target = targetOf(file, path);
    page.links.add(target);
    const to = path === "" ? "" : pathBetween(addressOf(file), addressOf(target));
    return anchor === undefined ? to : `${to}#${anchor}`;
  };
  const markdown = new Marked({
    renderer: {
      heading({ tokens, text, depth }: Tokens.Heading) {
        const anchor = anchorOf(text);
        const html = this.parser.parseInline(tokens);
        const plain = plainOf(html);
        if (depth === 1) page.title = plain;
        page.sections.push({ anchor: depth === 1 ? "" : anchor, heading: plain, depth, text: "" });
        return `<h${depth} id="${escape(anchor)}"><a href="#${escape(anchor)}">${html}</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        return `<a href="${escape(hrefOf(href))}">${this.parser.parseInline(tokens)}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        return `<img src="${escape(hrefOf(href))}" alt="${escape(text)}">`;
      },
      code({ text, lang }: Tokens.Code) {
        const [language = ""] = (lang ?? "").split(" ");
        return `<pre><code class="language-${escape(language)}">${escape(text)}</code></pre>\n`;
      },
      // Markdown that is meant as text but reads as HTML would vanish, here and elsewhere.
      html({ text }: Tokens.HTML | Tokens.Tag) {
        throw new Error(`Expected no HTML in ${file} but found ${text.trim()}`);
      },
    },
  });
  page.html = markdown.parse(readFileSync(file, "utf8"), { async: false });
  addTexts(page);
  return page;
}

/** Gives each section the text between its heading and the next one. */
function addTexts({ html, sections }: Page): void {
  const parts = html.split(/<h[1-6] id="[^"]*">[^]*?<\/h[1-6]>/);
  for (const [index, section] of sections.entries()) section.text = plainOf(parts[index + 1] ?? "");
}

export const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each]!);

const plainOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();
