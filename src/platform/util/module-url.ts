/**
 * Whether this runs from the package, with JavaScript in dist/ from scripts/build.ts, and not from TypeScript
 * in src/.
 */
export const isBuilt = import.meta.url.endsWith(".js");
const root = new URL(isBuilt ? "./" : "../../", import.meta.url);

/**
 * The URL of a module for a thread, a child process or workerd. `path` is its path below src/, without the
 * extension.
 */
export const moduleUrl = (path: string): URL => new URL(`${path}.${isBuilt ? "js" : "ts"}`, root);

/** The URL of a file outside src/ and dist/, by its path from the root of the project. */
export const projectUrl = (path: string): URL => new URL(`../${path}`, root);
