import { createHash } from "node:crypto";

const slugCharsMax = 60;

/** Letters, digits and underscores of a text of an account, for a label or the name of a file. */
const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, slugCharsMax)
    .replace(/^_+|(?<!_)_+$/g, "") || "unnamed";

/** Gives each text its own label; texts with one slug get a number. */
export class Labels {
  readonly #used = new Map<string, number>();

  labelFor(text: string): string {
    const slug = /^[a-z]/.test(slugOf(text)) ? slugOf(text) : `x_${slugOf(text)}`;
    const count = (this.#used.get(slug) ?? 0) + 1;
    this.#used.set(slug, count);
    // A slug ends with no underscore and a number behind two, so no slug is another's numbered label.
    return count === 1 ? slug : `${slug}__${count}`;
  }
}

/** The name of a file for a text of an account: it has no separators, and differs where texts differ. */
export const fileNameFor = (text: string, extension: string): string =>
  `${slugOf(text)}-${createHash("sha256").update(text).digest("hex").slice(0, 12)}${extension}`;
