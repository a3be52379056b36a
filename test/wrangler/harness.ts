import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ownerToken } from "../helpers/server.ts";

export interface WranglerRun {
  code: number | null;
  /** Standard output and error, in their order. */
  output: string;
}

export interface RunningWrangler {
  /** The output so far. */
  output: () => string;
  interrupt: () => void;
  ended: Promise<WranglerRun>;
}

/** The package of wrangler; another release can be tested with the same tests. */
const wrangler = resolve(process.env["SELVEDGE_WRANGLER"] ?? "node_modules/wrangler");
const { version } = JSON.parse(readFileSync(join(wrangler, "package.json"), "utf8")) as { version: string };
/** Whether it is the previous major version, which has other flags and texts. */
export const isPrevious = version.startsWith("3.");

/** A project folder in which wrangler runs as a process, against a platform. */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), "selvedge-wrangler-"));
  readonly #environment: Record<string, string>;

  /** With a token of its own wrangler finds its account itself. */
  constructor(server: { ready: { api: string; account_id: string } }, token?: string) {
    // wrangler caches accounts in the nearest of these folders, which might belong to another project.
    mkdirSync(join(this.folder, "node_modules"));
    this.#environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: this.folder,
      XDG_CONFIG_HOME: join(this.folder, ".config"),
      CI: "1",
      NO_COLOR: "1",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_SEND_ERROR_REPORTS: "false",
      WRANGLER_LOG_SANITIZE: "false",
      CLOUDFLARE_API_BASE_URL: server.ready.api,
      CLOUDFLARE_API_TOKEN: token ?? ownerToken,
      ...(token === undefined ? { CLOUDFLARE_ACCOUNT_ID: server.ready.account_id } : {}),
    };
  }

  /** Writes files; objects as JSON. */
  write(files: Record<string, string | object>): void {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    }
  }

  /** Runs a command that must succeed. Returns its output. */
  async run(args: readonly string[], input?: string): Promise<string> {
    const { code, output } = await this.attempt(args, input);
    if (code !== 0) throw new Error(`wrangler ${args.join(" ")} ended with ${code}:\n${output}`);
    return output;
  }

  async attempt(args: readonly string[], input = ""): Promise<WranglerRun> {
    return this.start(args, input).ended;
  }

  /** Starts a command that runs until it is interrupted. */
  start(args: readonly string[], input = ""): RunningWrangler {
    const child = spawn(process.execPath, [join(wrangler, "bin/wrangler.js"), ...args], {
      cwd: this.folder,
      env: this.#environment,
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stdin.end(input);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise<WranglerRun>((done, reject) => {
      child.once("error", reject);
      child.once("close", (code) => done({ code, output }));
    });
    return { output: () => output, interrupt: () => void child.kill("SIGINT"), ended };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
