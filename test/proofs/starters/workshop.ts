import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { delimiter, dirname, join, resolve } from "node:path";

const minuteMs = 60_000;
export const limitsMs = {
  make: 6 * minuteMs,
  build: 5 * minuteMs,
  deploy: 2 * minuteMs,
  look: 2 * minuteMs,
};
const outputCharsMax = 2 ** 20;

/** Projects as their creators left them, with their dependencies, for the next run. */
const cache = resolve("node_modules/.cache/selvedge-clients/starters");

export interface Recipe {
  /** The arguments of `npm create`: the initializer with its version, then arguments after the project's name. */
  create: readonly [initializer: string, ...args: string[]];
  /** Adds what a starter leaves to its user, before it is built. */
  prepare?: (folder: string) => Promise<unknown>;
}

/**
 * Makes a project under `root`, or takes it from the cache, and builds it. Nothing here asks the platform, so what
 * fails is the creator's or the network's: the error says which step, and how it ended.
 */
export async function make(root: string, name: string, recipe: Recipe): Promise<string> {
  const folder = join(root, name);
  const env = {
    ...process.env,
    ...quiet,
    npm_config_yes: "true",
    npm_config_prefer_offline: "true",
  };
  if (!takeFromCache(folder, name, recipe)) {
    const [initializer, ...args] = recipe.create;
    await run("npm", ["create", initializer, name, "--", ...args], {
      cwd: root,
      env,
      timeoutMs: limitsMs.make,
    });
    if (!existsSync(join(folder, "package.json")))
      throw new Error(`npm create ${initializer} ended well, and made nothing`);
    if (!existsSync(join(folder, "node_modules")))
      await run("npm", ["install"], { cwd: folder, env, timeoutMs: limitsMs.make });
  }
  await recipe.prepare?.(folder);
  if (scriptsOf(folder)["build"] !== undefined)
    await run("npm", ["run", "build"], { cwd: folder, env, timeoutMs: limitsMs.build });
  return folder;
}

/** Moves a project that could be made and built into the cache. */
export function keep(folder: string, name: string, recipe: Recipe): void {
  forget(name);
  move(folder, join(cache, name));
  // Written last: a project without it was not moved whole.
  writeFileSync(keyFile(name), keyOf(recipe));
}

/*
 * A project works in a folder of its own and not in the cache: below a folder named node_modules Vite, esbuild and
 * TypeScript leave a project's own sources alone.
 */
function takeFromCache(folder: string, name: string, recipe: Recipe): boolean {
  if (!existsSync(keyFile(name)) || readFileSync(keyFile(name), "utf8") !== keyOf(recipe)) return false;
  rmSync(keyFile(name));
  move(join(cache, name), folder);
  return true;
}
function forget(name: string): void {
  rmSync(keyFile(name), { force: true });
  rmSync(join(cache, name), { recursive: true, force: true });
}
function move(from: string, to: string): void {
  mkdirSync(cache, { recursive: true });
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    rmSync(from, { recursive: true });
  }
}
const keyFile = (name: string): string => join(cache, `${name}.json`);
const keyOf = (recipe: Recipe): string => JSON.stringify(recipe.create);

/** For creators and wrangler: no questions, no telemetry, and the Node that runs this. */
const quiet = {
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
  CI: "1",
  CREATE_CLOUDFLARE_TELEMETRY_DISABLED: "1",
  WRANGLER_SEND_METRICS: "false",
  ASTRO_TELEMETRY_DISABLED: "1",
  NG_CLI_ANALYTICS: "false",
  NUXT_TELEMETRY_DISABLED: "1",
};

function scriptsOf(folder: string): Record<string, string> {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    scripts?: Record<string, string>;
  };
  return scripts ?? {};
}

/** The project's own wrangler, or this repository's where it brings none. */
export class Wrangler {
  readonly #folder: string;
  readonly #package: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(folder: string, env: Record<string, string>) {
    const own = join(folder, "node_modules/wrangler");
    this.#folder = folder;
    this.#package = existsSync(own) ? own : resolve("node_modules/wrangler");
    this.#env = { ...process.env, ...quiet, ...env };
  }

  get version(): string {
    const { version } = JSON.parse(readFileSync(join(this.#package, "package.json"), "utf8")) as {
      version: string;
    };
    return version;
  }

  /** Answers with the name of the script that it uploaded, which is the configuration's. */
  async deploy(): Promise<string> {
    const output = await this.run("deploy");
    const uploaded = /^Uploaded (\S+) \(/m.exec(output);
    if (uploaded === null) throw new Error(`wrangler names no uploaded script: ${output.slice(-500)}`);
    return uploaded[1]!;
  }

  /** Answers with what it wrote to its standard output. */
  async run(...args: string[]): Promise<string> {
    return run(process.execPath, [join(this.#package, "bin/wrangler.js"), ...args], {
      cwd: this.#folder,
      env: this.#env,
      timeoutMs: limitsMs.deploy,
    });
  }
}

interface Options {
  cwd: string;
  env: NodeJS.ProcessEnv;
  timeoutMs: number;
}

/** Runs a program with its children in a group of their own, which is killed as one when the time is over. */
async function run(command: string, args: readonly string[], options: Options): Promise<string> {
  const { cwd, env, timeoutMs } = options;
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let all = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout = (stdout + chunk.toString()).slice(-outputCharsMax)));
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (all = (all + chunk.toString()).slice(-outputCharsMax)));
  let isLate = false;
  const end = (): void => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // The group has ended.
    }
  };
  const timer = setTimeout(() => {
    isLate = true;
    end();
    child.stdout.destroy();
    child.stderr.destroy();
  }, timeoutMs);
  // Child processes of a program would hold the pipes open, so they end with the program.
  child.once("exit", end);
  const code = await new Promise<number | null>((ended, failed) => {
    child.once("error", failed);
    child.once("close", ended);
  }).finally(() => clearTimeout(timer));
  const line = [command, ...args].join(" ");
  const file = join(cwd, "..", "last-failure.log");
  if (isLate || code !== 0) await writeFile(file, `${line}\n${all}`);
  if (isLate) throw new Error(`not done after ${timeoutMs / 1000} s: ${line}`);
  if (code !== 0) throw new Error(causeIn(all) ?? `exit ${code}: ${line}`);
  return stdout;
}

/** The line of a program's output that most likely tells why it failed. */
function causeIn(output: string): string | undefined {
  // oxlint-disable-next-line no-control-regex
  const lines = output.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/g, "").split("\n");
  const messages = lines
    .map((each) => each.replace(/^[\s│╰├✘╭×▲]+/u, "").trim())
    .filter(
      (each) => each !== "" && !/^npm warn|complete log of this run|^at |^throw |^ERROR +Error$/.test(each),
    );
  const patterns = [
    /^npm error (notarget No|404 Not Found)/,
    /unable to (connect|resolve)|can't be reached|trouble connecting/i,
    /\[code: \d+\]/,
    /failed to (fetch|clone|download|deploy)/i,
    /getaddrinfo|ENOTFOUND|EAI_AGAIN/,
    /\berror\b|failed/i,
  ];
  for (const pattern of patterns) {
    const found = messages.find((each) => pattern.test(each));
    if (found !== undefined) return found.slice(0, 400);
  }
  return messages.at(-1)?.slice(0, 400);
}
