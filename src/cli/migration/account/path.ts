import { MigrationError } from "../failure.ts";

/**
 * A path of the API with encoded values: path`/zones/${zone}/snippets/${name}`. Throws for values that a URL would
 * resolve, so that no name from an account leads to another path.
 */
export function path(texts: TemplateStringsArray, ...values: readonly string[]): string {
  return texts.reduce((built, text, index) => {
    const value = values[index];
    if (value === undefined) return built + text;
    if (value === "" || value === "." || value === "..")
      throw new MigrationError(`Expected a name that can be part of a path but received "${value}"`);
    return built + text + encodeURIComponent(value.toWellFormed());
  }, "");
}
