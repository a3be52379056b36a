/** A file of a folder, by its path in the folder. */
export interface FolderFile {
  path: string;
  file: File;
}

const filesMax = 1000;
/** The content types that the API knows modules by. */
const types: Readonly<Record<string, string>> = {
  js: "application/javascript+module",
  mjs: "application/javascript+module",
  cjs: "application/javascript",
  json: "application/json",
  wasm: "application/wasm",
  map: "application/source-map",
  bin: "application/octet-stream",
  txt: "text/plain",
  html: "text/plain",
  css: "text/plain",
  sql: "text/plain",
  md: "text/plain",
  svg: "text/plain",
  xml: "text/plain",
};
const endingOf = (path: string): string => /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
const isSkipped = (path: string): boolean =>
  /(^|\/)(\.[^/]*|node_modules)(\/|$)/.test(path) ||
  /(^|\/)(package(-lock)?\.json|wrangler\.(jsonc?|toml)|tsconfig\.json)$/.test(path);

/** The modules of a folder, and the files that are none. */
export interface FolderModules {
  modules: FolderFile[];
  skipped: string[];
}

export function modulesOf(files: readonly FolderFile[]): FolderModules {
  const isModule = ({ path }: FolderFile): boolean => types[endingOf(path)] !== undefined && !isSkipped(path);
  return {
    modules: files.filter(isModule).map(({ path, file }) => ({
      path,
      file: new File([file], path, { type: types[endingOf(path)]! }),
    })),
    skipped: files.filter((each) => !isModule(each)).map(({ path }) => path),
  };
}

/** The modules that may be the main one, the likeliest first. */
export function mainsOf(modules: readonly FolderFile[]): string[] {
  const rank = (path: string): number =>
    path.split("/").length * 10 +
    (/(^|\/)index\.m?js$/.test(path) ? 0 : /(^|\/)(main|worker|_worker)\.m?js$/.test(path) ? 1 : 5);
  return modules
    .map(({ path }) => path)
    .filter((path) => /\.m?js$/.test(path))
    .toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** The form of an upload of modules. */
export function formOf(metadata: object, modules: readonly FolderFile[]): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  for (const { path, file } of modules) form.set(path, file, path);
  return form;
}

/** The files of a choice. Those of a folder have paths that begin with its name. */
export const chosenFiles = (list: FileList): FolderFile[] =>
  withoutRoot([...list].map((file) => ({ path: file.webkitRelativePath || file.name, file })));

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
  if (files.length >= filesMax || /(^|\/)(node_modules|\.git)$/.test(path)) return;
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

/** Paths without the folder that all of them are in. */
function withoutRoot(files: readonly FolderFile[]): FolderFile[] {
  const root = files[0]?.path.split("/", 1)[0];
  const isShared = files.every(({ path }) => path.startsWith(`${root}/`));
  return files
    .slice(0, filesMax)
    .map(({ path, file }) => ({ path: isShared ? path.slice(root!.length + 1) : path, file }));
}
