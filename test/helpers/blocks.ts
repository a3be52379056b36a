import { readFileSync } from "node:fs";

/** A code block of a Markdown page. */
export interface Block {
  language: string;
  /** The rest of the info string: a way to test the block, or the file name to write it to. */
  use: string;
  code: string;
}
export const blocksOf = (file: string): Block[] =>
  [...readFileSync(file, "utf8").matchAll(/^```(\w*) ?(.*)\n([^]*?)^```$/gm)].map(
    ([, language, use, code]) => ({ language: language!, use: use!, code: code! }),
  );

/** The lines that a block says are part of its output. */
export const expectedOf = (code: string): string[] =>
  [...code.matchAll(/^#→ (.*)$/gm)].map(([, expected]) => expected!);
