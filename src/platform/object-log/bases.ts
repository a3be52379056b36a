import type { Archive, Part } from "../storage/archive/archive.ts";
import { isDatabase, isNamespace, type ObjectFile } from "../storage/live-files/object-files.ts";
import { chunksOf, logPrefix } from "./segment.ts";
import type { Stamp } from "./stamps.ts";

/**
 * A copy of a large database in a file of its own. The database was written during the copy, so the content
 * is a state only together with the frames between `start` and `stamp`.
 */
export interface Base extends ObjectFile {
  /** Before the first frame that must be applied to the content. */
  start: Stamp;
  /** From here on, content and frames give a state. */
  stamp: Stamp;
  part: Part;
}

const basesPrefix = `${logPrefix}bases/`;
const pattern =
  /^object-log\/bases\/([^/]+)\/([^/]+)\/([\da-f]{16})-([\da-f]{16})-(\d+)-([\da-f]{64})\.base$/;

/** The path of the content of a base that begins now. */
export const contentPath = ({ namespace, name }: ObjectFile, start: Stamp, attempt: string): string =>
  `${basesPrefix}${namespace}/${name}/${start}-${attempt}.zst`;

const markPath = ({ namespace, name, start, stamp, part }: Base): string =>
  `${basesPrefix}${namespace}/${name}/${start}-${stamp}-${part.bytes}-${part.sha256}.base`;

/** Completes a base with a small file, the mark. Its name describes the base, and its content is the base's path. */
export const markBase = async (files: Archive, base: Base): Promise<void> =>
  files.write(markPath(base), chunksOf(Buffer.from(base.part.path)));

/** Removes a base, the mark first, so that an interrupted removal leaves no base that looks complete. */
export async function removeBase(files: Archive, base: Base): Promise<void> {
  await files.remove(markPath(base));
  await files.remove(base.part.path);
}

/** All complete bases. */
export async function* basesIn(files: Archive): AsyncGenerator<Base> {
  for await (const { path } of files.list(basesPrefix)) {
    const [, namespace, name, start, stamp, bytes, sha256] = pattern.exec(path) ?? [];
    if (sha256 === undefined || !isNamespace(namespace!) || !isDatabase(name!)) continue;
    const mark = await files.read(path);
    if (mark === undefined) continue;
    const chunks: Uint8Array[] = [];
    for await (const chunk of mark.stream) chunks.push(chunk);
    const part = { path: Buffer.concat(chunks).toString(), bytes: Number(bytes), sha256 };
    yield { namespace: namespace!, name: name!, start: start!, stamp: stamp!, part };
  }
}
