import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Logger } from "pino";
import { isBuilt, moduleUrl, projectUrl } from "../util/module-url.ts";
import type { Bundle } from "./bundle.ts";

const outputBytesMax = 64 * 1024 * 1024;
const buildTimeoutMs = 60_000;
const run = promisify(execFile);

/** The built console of the npm package. */
export const packagedBundle = "dashboard-dist/console.json";

/** The built console: the one in the npm package, or, in a clone, one that is built from the sources and cached. */
export class DashboardFiles {
  readonly #logger: Logger;
  #current: { key: string; bundle: Promise<Bundle> } | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The latest console. In a clone, it is built again when its sources changed. Rejects if the build fails. */
  async latest(): Promise<Bundle> {
    const key = isBuilt ? "package" : await sourcesKey();
    if (this.#current?.key !== key) {
      const bundle =
        key === "package" ? readBundle(fileURLToPath(projectUrl(packagedBundle))) : this.#built(key);
      this.#current = { key, bundle };
      try {
        await bundle;
      } catch (error) {
        // The next request tries again.
        if (this.#current?.bundle === bundle) this.#current = undefined;
        throw error;
      }
    }
    return this.#current.bundle;
  }

  /** The console that `latest` returned last, so that files match the page that was sent. */
  async current(): Promise<Bundle> {
    return this.#current?.bundle ?? this.latest();
  }

  async #built(key: string): Promise<Bundle> {
    const folder = fileURLToPath(projectUrl("node_modules/.cache/selvedge"));
    const file = join(folder, `console-${key}.json`);
    const kept = await readBundle(file).catch(() => undefined);
    if (kept !== undefined) return kept;
    const text = await buildConsole();
    // If the disk cannot be written, the next start builds the console again.
    await keep(folder, file, text).catch((error: unknown) =>
      this.#logger.info({ err: error }, "the built console could not be cached"),
    );
    return JSON.parse(text) as Bundle;
  }
}

/** Builds the console in a process of its own, and returns it as JSON. */
export async function buildConsole(): Promise<string> {
  const { stdout } = await run(
    process.execPath,
    [fileURLToPath(moduleUrl("platform/dashboard/build-process"))],
    {
      maxBuffer: outputBytesMax,
      timeout: buildTimeoutMs,
    },
  );
  return stdout;
}

const readBundle = async (file: string): Promise<Bundle> =>
  JSON.parse(await readFile(file, "utf8")) as Bundle;

async function keep(folder: string, file: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const beside = `${file}.${process.pid}`;
  await writeFile(beside, text);
  await rename(beside, file);
}

/** A hash of everything that the console is built from. */
async function sourcesKey(): Promise<string> {
  const folder = fileURLToPath(projectUrl("dashboard"));
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && /\.(tsx?|css|html|svg)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  const builder = ["bundle.ts", "build-process.ts", "join-chunks.ts"];
  const others = ["openapi.json", "package.json", ...builder.map((name) => `src/platform/dashboard/${name}`)];
  const all = [...files, ...others.map((file) => fileURLToPath(projectUrl(file)))];
  const contents = await Promise.all(all.map(async (file) => readFile(file)));
  const hash = createHash("sha256");
  for (const [index, file] of all.entries())
    hash.update(`${file}\0${contents[index]!.length}\0`).update(contents[index]!);
  return hash.digest("hex").slice(0, 24);
}
