import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ControlAddress } from "./control-client.ts";

/** Settings by their names in camel case, such as `{ apiRateLimit: 5 }`; docs/reference/configuration.md lists them. */
export type PlatformSettings = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** The part of the ready file that is used here. */
export interface ReadyPlatform {
  api: string;
  edge: string;
  edge_tls: string | null;
  tls_authority: string | null;
  dns: string;
  dashboard: string;
  account_id: string;
  control: ControlAddress;
  /** Of the seed. */
  tokens?: Record<string, string>;
  accounts?: Record<string, { account_id: string; token: string; tokens: Record<string, string> }>;
}

// The program's own command `run` has this file in another folder.
const program = ["../../bin/selvedge.js", "../bin/selvedge.js"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(path))!;
const outputCharsMax = 65_536;
/**
 * The young generation of V8 in a platform under test, in MiB for each half. A test makes little garbage: with V8's own
 * size, a platform takes 50 MB more, and its start no less CPU time.
 */
const youngMebibytes = 2;
const lookMs = 10;
/** Time to wait for the last output after the process has ended. */
const lastOutputMs = 200;

/** A platform as a child process, which also ends when this process ends. */
export class PlatformProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  /** Why the process ended; undefined while it runs. */
  #ended: string | undefined;

  constructor(settings: PlatformSettings) {
    const child = spawn(process.execPath, [program, "serve"], {
      env: environmentOf(settings),
      // The system closes the channel when this process ends, and the platform then stops.
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#ended = reason;
        resolve();
      };
      child.once("exit", (code, signal) => end(`ended with ${signal ?? code}`));
      child.once("error", ({ message }) => end(`did not start: ${message}`));
    });
  }

  async stop(): Promise<void> {
    this.#child.ref();
    this.#child.kill();
    await this.#exited;
  }

  /**
   * Waits for the ready file, which appears when every listener accepts connections. Throws an Error with the process's
   * output if the file does not appear in time.
   */
  async ready(file: string, timeoutMs: number): Promise<ReadyPlatform> {
    const child = this.#child;
    let output = "";
    let isReady = false;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      if (isReady) process.stderr.write(text);
      else output = (output + text).slice(-outputCharsMax);
    });
    const written = new Promise((resolve) => child.stderr!.once("close", resolve));
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      try {
        const ready = JSON.parse(readFileSync(file, "utf8")) as ReadyPlatform;
        isReady = true;
        release(child);
        return ready;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
      if (this.#ended !== undefined) {
        await Promise.race([written, delay(lastOutputMs)]);
        throw new Error(`selvedge ${this.#ended}: ${output.trim()}`);
      }
      if (performance.now() > deadlineMs)
        throw new Error(`selvedge was not ready after ${timeoutMs} ms: ${output.trim()}`);
      await Promise.race([delay(lookMs), this.#exited]);
    }
  }
}

/** The environment of the child: this process's, without SELVEDGE_ variables, and with the given settings. */
function environmentOf(settings: PlatformSettings): NodeJS.ProcessEnv {
  const own = Object.entries(settings).map(([name, value]) => [
    `SELVEDGE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`,
    Array.isArray(value) ? value.join(",") : String(value),
  ]);
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("SELVEDGE_") && name !== "NODE_ENV",
  );
  // The first of several equal options counts least, so the test's own ones win.
  const options = `--max-semi-space-size=${youngMebibytes} ${process.env["NODE_OPTIONS"] ?? ""}`.trim();
  return Object.fromEntries([...inherited, ...own, ["NODE_OPTIONS", options]]) as NodeJS.ProcessEnv;
}

/** Makes the platform not keep this process alive. */
function release(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  (child.stderr as unknown as { unref(): void }).unref();
}
