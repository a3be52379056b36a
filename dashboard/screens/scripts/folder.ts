/** A file of a folder, by its path in the folder. */
export interface FolderFile {
  path: string;
  file: File;
}

/** As many as a version may have modules. One more is kept, to tell that there are too many. */
export const filesMax = 1000;
export const isDependency = (path: string): boolean => /(^|\/)(node_modules|\.git)(\/|$)/.test(path);
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
  /** Whether there are more files than are shown here. */
  isTooLarge: boolean;
}

/** Modules from a folder, and the main one of them. */
export interface FolderCode extends FolderModules {
  main: string;
}

export function modulesOf(files: readonly FolderFile[]): FolderModules {
  const isModule = ({ path }: FolderFile): boolean => types[endingOf(path)] !== undefined && !isSkipped(path);
  return {
    modules: files.filter(isModule).map(({ path, file }) => ({
      path,
      file: new File([file], path, { type: types[endingOf(path)]! }),
    })),
    skipped: files.filter((each) => !isModule(each)).map(({ path }) => path),
    isTooLarge: files.length > filesMax,
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

/** The reason why modules cannot be uploaded yet. */
export const refusalOf = (code: FolderCode | undefined): string | undefined =>
  code === undefined
    ? "choose a folder"
    : code.isTooLarge
      ? "the folder has more than 1,000 files: choose the folder of the build"
      : code.main === ""
        ? "the folder has no module of JavaScript"
        : undefined;

/** The form of an upload of modules. */
export function formOf(metadata: object, modules: readonly FolderFile[]): FormData {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  for (const { path, file } of modules) form.set(path, file, path);
  return form;
}

/** The files of a choice. Those of a folder have paths that begin with its name. */
export const chosenFiles = (list: Iterable<File & { webkitRelativePath?: string }>): FolderFile[] =>
  withoutRoot(
    [...list]
      .map((file) => ({ path: file.webkitRelativePath || file.name, file }))
      .filter(({ path }) => !isDependency(path)),
  );

/** Paths without the folder that all of them are in. */
export function withoutRoot(files: readonly FolderFile[]): FolderFile[] {
  const root = files[0]?.path.split("/", 1)[0];
  const isShared = files.every(({ path }) => path.startsWith(`${root}/`));
  return files
    .slice(0, filesMax + 1)
    .map(({ path, file }) => ({ path: isShared ? path.slice(root!.length + 1) : path, file }));
}
