import { filesMax, isDependency, withoutRoot, type FolderFile } from "./folder.ts";

/** The files that were dropped, and those in dropped folders. */
export async function droppedFiles({ items }: DataTransfer): Promise<FolderFile[]> {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const files: FolderFile[] = [];
  for (const entry of entries) await collect(entry, files);
  return withoutRoot(files);
}

async function collect(entry: FileSystemEntry, files: FolderFile[]): Promise<void> {
  const path = entry.fullPath.replace(/^\//, "");
  // Not `isSkipped`: a skipped file is named, but a folder of dependencies is not even read.
  if (files.length > filesMax || isDependency(path)) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => {
      (entry as FileSystemFileEntry).file(resolve, reject);
    });
    files.push({ path, file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // Each answer has some of the entries; the last one is empty.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (some.length === 0) return;
    for (const each of some) await collect(each, files);
  }
}
