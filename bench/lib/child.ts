import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../../src/platform/config/settings.ts";
import type { Ready } from "../../src/ready.ts";
import { processTree } from "./tree.ts";

export interface Child {
  pid: number;
  stop(): Promise<void>;
}
export const benchToken = "bench-token-0123456789";

/** Running child processes. They are ended when this process exits, also if the benchmark fails. */
const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) child.kill();
});
export function ends<T extends ChildProcess>(child: T): T {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** A program of bench/peers, which prints its port when it listens. */
export async function startPeer(file: string, ...args: string[]): Promise<Child & { port: number }> {
  const { printed, ...child } = await startProgram(file, args);
  return { ...child, port: Number(printed) };
}

/** Settings of a platform, and whether it has no audit log. */
export type PlatformOptions = Partial<Config> & { withoutAudit?: boolean };

/**
 * Starts platforms with these options in one process. Two launches of one program differ by more than most parts of it
 * cost, but platforms in one process share compiled code, memory and a heap.
 */
export async function startPlatforms(
  options: readonly PlatformOptions[],
): Promise<Child & { platforms: Ready[] }> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-bench-"));
  const all = options.map((each, i) => ({ dataDir: join(folder, String(i)), ...each }));
  const started = await startProgram(
    "platforms.ts",
    all.map((each) => JSON.stringify(each)),
  );
  return {
    pid: started.pid,
    platforms: JSON.parse(started.printed) as Ready[],
    async stop() {
      await started.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startProgram(file: string, args: readonly string[]): Promise<Child & { printed: string }> {
  const child = ends(
    spawn(process.execPath, [join(import.meta.dirname, "../peers", file), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const printed = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    child.once("exit", () => reject(new Error(`${file} ended`)));
  });
  return { pid: child.pid!, printed, stop: () => stop(child) };
}

const loggedMax = 1000;

export interface Started extends Child {
  ready: Ready;
  dataDir: string;
  /** Its log since the start: errors only. */
  logged: readonly string[];
  /** Kills (-9) the process and its descendants; the data folder stays. */
  kill(): Promise<void>;
}

/** `selvedge serve` of the checkout at `root`, with the given data folder or a fresh one. */
export async function startSelvedge(
  args: readonly string[] = [],
  dataDir = mkdtempSync(join(tmpdir(), "selvedge-bench-")),
  root = ".",
): Promise<Started> {
  const readyFile = join(dataDir, "ready.json");
  rmSync(readyFile, { force: true });
  const listen = ["api", "edge", "dns"].flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
  const child = ends(
    spawn(
      process.execPath,
      ["bin/selvedge.js", "serve", ...listen, "--data-dir", dataDir, "--ready-file", readyFile, ...args],
      {
        env: {
          ...process.env,
          SELVEDGE_API_TOKEN: benchToken,
          SELVEDGE_API_RATE_LIMIT: "0",
          SELVEDGE_LOG_LEVEL: "error",
        },
        stdio: ["ignore", "ignore", "pipe"],
        cwd: root,
      },
    ),
  );
  const logged: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    console.error(line);
    if (logged.length < loggedMax) logged.push(line);
  });
  while (!existsSync(readyFile)) {
    if (child.exitCode !== null) throw new Error("selvedge ended");
    await delay(5);
  }
  const ready = JSON.parse(readFileSync(readyFile, "utf8")) as Ready;
  return {
    pid: ready.pid,
    ready,
    dataDir,
    logged,
    async kill() {
      const exited = once(child, "exit");
      for (const pid of processTree(ready.pid)) process.kill(pid, "SIGKILL");
      await exited;
    },
    async stop() {
      await stop(child);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  await exited;
}

/** A call of the management API that must succeed. */
export async function api<T>(ready: Ready, method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${ready.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${benchToken}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const envelope = (await response.json()) as { success: boolean; result: T; errors: unknown };
  if (!envelope.success) throw new Error(JSON.stringify(envelope.errors));
  return envelope.result;
}
