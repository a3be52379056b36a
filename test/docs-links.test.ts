import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { anchorMaker } from "../scripts/site/anchors.ts";

/** The form of every Markdown file of the project: links, anchors and line lengths. */
const pages = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], { encoding: "utf8" })
  .split("\n")
  .filter(Boolean);

/** The lines of a page outside of code blocks. Replaced lines keep their number. */
function proseLines(page: string): string[] {
  let isCode = false;
  return readFileSync(page, "utf8")
    .split("\n")
    .map((line) => {
      const isFence = line.trimStart().startsWith("```");
      if (isFence) isCode = !isCode;
      return isFence || isCode ? "" : line;
    });
}

function anchorsOf(page: string): Set<string> {
  const anchorOf = anchorMaker();
  const headings = proseLines(page).flatMap((line) => /^#{1,6} (.+)$/.exec(line)?.[1] ?? []);
  return new Set(headings.map(anchorOf));
}

/** Targets of links and images. A link may span two lines; code spans contain none. */
function targetsOf(page: string): string[] {
  const text = proseLines(page)
    .join("\n")
    .replace(/`[^`\n]*`/g, "code");
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => target!);
}

/** Why a link of a page leads nowhere, or undefined where it is good. */
function faultOf(page: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [path = "", anchor] = target.split("#");
  const file = path === "" ? page : normalize(join(dirname(page), path));
  if (relative(".", resolve(file)).startsWith("..")) return `${page}: ${target} leaves the repository`;
  if (!existsSync(file)) return `${page}: ${target} names no file`;
  if (anchor === undefined) return undefined;
  if (!statSync(file).isFile() || !file.endsWith(".md")) return `${page}: ${target} has an anchor in no page`;
  return anchorsOf(file).has(anchor) ? undefined : `${page}: ${target} names no heading`;
}

describe("the Markdown pages", () => {
  it("link only to files and headings that exist", () => {
    const targets = pages.map((page) => [page, targetsOf(page)] as const);
    expect(targets.flatMap(([, each]) => each).length).toBeGreaterThan(100);
    const faults = targets.flatMap(([page, each]) => each.map((target) => faultOf(page, target)));
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
  });

  it("name only source files that exist", () => {
    const named = pages.flatMap((page) =>
      [
        ...proseLines(page)
          .join("\n")
          .matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|js|json|html))`/g),
      ].map(([, file]) => [page, file!] as const),
    );
    expect(named.length).toBeGreaterThan(100);
    // Paths start at the root of the project or at src/. dist/ exists only after a build.
    const exists = (file: string): boolean =>
      existsSync(file) || existsSync(join("src", file)) || file.startsWith("dist/");
    expect(named.filter(([, file]) => !exists(file)).map((each) => each.join(": "))).toEqual([]);
  });

  it("are all reachable from README.md", () => {
    const reached = new Set<string>(["README.md"]);
    for (const page of reached)
      for (const target of targetsOf(page)) {
        const file = normalize(join(dirname(page), target.split("#")[0]!));
        if (pages.includes(file)) reached.add(file);
      }
    // Decisions are a folder that README.md links to; snippets' examples likewise from their page.
    const isListed = (page: string): boolean => /^(docs\/decisions|test)\//.test(page);
    expect(pages.filter((page) => !reached.has(page) && !isListed(page))).toEqual([]);
  });

  it("wrap their prose at 110 columns", () => {
    const columnsMax = 110;
    const isProse = (line: string): boolean => !/^(\||#|!\[)/.test(line);
    const long = pages.flatMap((page) =>
      proseLines(page).flatMap((line, index) =>
        isProse(line) && line.length > columnsMax && / /.test(line.trim().slice(0, columnsMax))
          ? [`${page}:${index + 1}`]
          : [],
      ),
    );
    expect(long).toEqual([]);
  });
});
