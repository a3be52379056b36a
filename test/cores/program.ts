import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryFolder } from "../helpers/process.ts";

/** The beginning of `bin/selvedge.js` in a version of the program. */
export const preludes = {
  works: "",
  edgesThrow: `if (/"role":"edge"/.test(process.env.EDGE_SUPERVISED)) throw new Error("a broken version");`,
  edgesHang: `if (/"role":"edge"/.test(process.env.EDGE_SUPERVISED)) {
    setInterval(() => {}, 1000);
    await new Promise(() => {});
  }`,
};

/**
 * Versions of the program, one of which is installed: a symbolic link leads to its folder, as an upgrade leaves it. With
 * `isWhole`, each has all files of its own, so its first process compiles them.
 */
export class Program implements Disposable {
  readonly #isWhole: boolean;
  readonly #folder = temporaryFolder();
  readonly path = join(this.#folder, "current/bin/selvedge.js");

  constructor(isWhole = false) {
    this.#isWhole = isWhole;
  }

  /** Installs a version. Its processes have its name as their title. */
  install(version: string, prelude: keyof typeof preludes = "works"): void {
    const folder = join(this.#folder, version);
    mkdirSync(folder);
    const files = ["src", "dashboard", "package.json", "openapi.json"];
    const own = this.#isWhole ? files : [];
    for (const each of ["bin", ...own]) cpSync(each, join(folder, each), { recursive: true });
    for (const each of ["node_modules", ...files])
      if (!own.includes(each)) symlinkSync(resolve(each), join(folder, each));
    const bin = join(folder, "bin/selvedge.js");
    const [shebang, ...rest] = readFileSync(bin, "utf8").split("\n");
    const title = `process.title = ${JSON.stringify(version)};`;
    writeFileSync(bin, [shebang, title, preludes[prelude], ...rest].join("\n"));
    const link = join(this.#folder, "next");
    symlinkSync(folder, link);
    renameSync(link, join(this.#folder, "current"));
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/** The version that a process runs. */
export const versionOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, "utf8").trim();
