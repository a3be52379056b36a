import type { Archive, Part } from "./archive.ts";
import { damaged } from "./errors.ts";
import { readLines, writeLines } from "./parts.ts";

/** A file of an archive that lists others, for kinds of which there may be many. */
export interface PartList extends Part {
  count: number;
  /** Size of the listed files. */
  total_bytes: number;
}

/** Writes the list of files while they are written. */
export async function writePartList(
  files: Archive,
  path: string,
  parts: AsyncIterable<Part>,
): Promise<PartList> {
  let totalBytes = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const part of parts) {
      totalBytes += part.bytes;
      yield `${JSON.stringify(part)}\n`;
    }
  };
  const { rows, ...part } = await writeLines(files, path, lines());
  return { ...part, count: rows, total_bytes: totalBytes };
}

/** The listed files. Throws, at the latest at the end, if the list is damaged. */
export async function* readPartList(files: Archive, list: PartList): AsyncGenerator<Part> {
  let count = 0;
  for await (const line of readLines(files, list)) {
    yield JSON.parse(line) as Part;
    count += 1;
  }
  if (count !== list.count) throw damaged(list.path, `names ${count} files instead of ${list.count}`);
}
