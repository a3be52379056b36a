import { readFileSync } from "node:fs";
import { pages, targetOf } from "./files.ts";

export interface Group {
  title: string;
  pages: { file: string; title: string }[];
}

/**
 * The table of contents, which is the landing page's: a group for each row of the tables in docs/README.md, with the pages
 * that the row links to. A page is in the first group that names it.
 */
export function contents(titleOf: (file: string) => string): Group[] {
  const landing = "docs/README.md";
  const listed = new Set<string>();
  const take = (file: string): boolean => pages.includes(file) && !listed.has(file) && !!listed.add(file);
  const group = (title: string, found: readonly string[]): Group => ({
    title,
    pages: found.filter(take).map((file) => ({ file, title: titleOf(file) })),
  });
  const rows = [
    ...readFileSync(landing, "utf8").matchAll(/^\| (?!I want|page|-)([^|\n]+) \| ([^|\n]+) \|/gm),
  ];
  const groups = [group("Start", ["README.md", landing])];
  for (const [, what, read] of rows) {
    const [first, second] = [linksOf(landing, what!), linksOf(landing, read!)];
    groups.push(first.length > 0 ? group("Reference", first) : group(capital(what!), second));
  }
  groups.push(
    group(
      "Decisions",
      pages.filter((file) => file.startsWith("docs/decisions/")),
    ),
    group("Project", pages),
  );
  return merged(groups).filter((each) => each.pages.length > 0);
}

const linksOf = (page: string, text: string): string[] =>
  [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, path]) => targetOf(page, path!));
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** One group for each title. */
function merged(groups: readonly Group[]): Group[] {
  const byTitle = Map.groupBy(groups, ({ title }) => title);
  return [...byTitle].map(([title, each]) => ({ title, pages: each.flatMap((group) => group.pages) }));
}
