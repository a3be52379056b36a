import type { Archive } from "./archive.ts";

const removalsAtOnce = 8;

/** Removes all files below a prefix. */
export async function removeAll(files: Archive, prefix: string): Promise<void> {
  let batch: string[] = [];
  const remove = async (): Promise<void> => {
    await Promise.all(batch.map((path) => files.remove(path)));
    batch = [];
  };
  for await (const { path } of files.list(prefix)) {
    batch.push(path);
    if (batch.length === removalsAtOnce) await remove();
  }
  await remove();
}
