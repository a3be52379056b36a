import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

/** Every file of the project, by its path from the root. */
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" })
  .split("\n")
  .filter(Boolean);

/** The Markdown files that are pages of the site; those of tests are not. */
export const pages = files.filter((file) => file.endsWith(".md") && !file.startsWith("test/"));

/** The files of a folder, without those in folders below it. */
export const filesIn = (folder: string): string[] => files.filter((file) => dirname(file) === folder);

/**
 * The path of a file or folder of the project on the site: pages under their own path, README.md as the index of its
 * folder, pictures unchanged, and any other file or folder as a page below `files/`.
 */
export function addressOf(file: string): string {
  if (pages.includes(file)) return file.replace(/README\.md$/, "index.html").replace(/\.md$/, ".html");
  return isPicture(file) ? file : `files/${file}.html`;
}
export const isPicture = (file: string): boolean => /\.(svg|png|webp)$/.test(file);
export const isFolder = (file: string): boolean => statSync(file).isDirectory();

/** The path from one address of the site to another. */
export const pathBetween = (from: string, to: string): string => relative(dirname(from), to) || to;

/** The file or folder that a link of a page names, without its anchor. */
export const targetOf = (page: string, path: string): string =>
  path === "" ? page : normalize(join(dirname(page), path)).replace(/\/$/, "");
