import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { globSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { FolderOwner } from "../../src/platform/storage/folder-owner.ts";
import { freePort } from "../helpers/free-port.ts";
import { temporaryFolder } from "../helpers/process.ts";

/**
 * The promised times of starts that fail, and of a stop: a taken port ends the start within a second, a folder in use
 * within half a second, and `/readyz` is 503 within 50 ms of SIGTERM. A failed start leaves no process, no lock and an
 * unchanged folder. test/starts has the same cases without times. `node test/proofs/starts.ts`
 */
const listeners = ["api", "edge", "edge-tls", "metrics", "dns", "health"];
const dataDir = join(temporaryFolder(), "data");
let failures = 0;

function row(what: string, ms: number, msMax: number, faults: readonly string[]): void {
  const isRight = ms <= msMax && faults.length === 0;
  if (!isRight) failures++;
  process.stdout.write(`| ${what} | ${ms.toFixed(0)} ms | ${msMax} ms | ${faults.join("; ") || "none"} |\n`);
}

/** `serve` in a process group of its own. */
function start(args: readonly string[]) {
  const free = listeners.flatMap((name) => [`--${name}-listen`, "127.0.0.1:0"]);
  return spawn(process.execPath, ["bin/selvedge.js", "serve", ...free, "--data-dir", dataDir, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
}

const membersOf = (group: number): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[2]) === group;
      } catch {
        return false;
      }
    });

/** The names and contents of all files in the folder. */
const contents = (): string => {
  const hash = createHash("sha256");
  for (const file of globSync(`${dataDir}/**`, { exclude: (name) => name.endsWith(".sock") }).sort())
    hash.update(`${file}\n`).update(statSync(file).isFile() ? readFileSync(file) : "");
  return hash.digest("hex");
};

async function failing(
  what: string,
  msMax: number,
  args: readonly string[],
  cause: RegExp,
  isInUse: boolean,
) {
  const before = isInUse ? "" : contents();
  const startMs = performance.now();
  const child = start(args);
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, "exit")) as [number];
  const ms = performance.now() - startMs;
  const faults: string[] = [];
  if (code !== 1) faults.push(`exit ${code}`);
  if (!cause.test(stderr)) faults.push(`unexpected cause: ${stderr.trim()}`);
  if (membersOf(child.pid!).length > 0) faults.push("a process is left");
  if (!isInUse && FolderOwner.find(dataDir) !== undefined) faults.push("the folder is locked");
  if (!isInUse && contents() !== before) faults.push("the folder has changed");
  row(what, ms, msMax, faults);
}

async function ready(args: readonly string[] = []) {
  const child = start(args);
  let stdout = "";
  await new Promise<void>((resolve) =>
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      if (stdout.includes("API token")) resolve();
    }),
  );
  return child;
}

process.stdout.write("| case | time | at most | faults |\n|---|---|---|---|\n");
const made = await ready();
made.kill("SIGTERM");
await once(made, "exit");
for (const name of listeners) {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
  const cause = new RegExp(
    `^could not listen on ${address.replaceAll(".", "\\.")} .*EADDRINUSE[^\\n]*\\n[^\\n]*\\n$`,
  );
  await failing(`taken port of --${name}-listen`, 1000, [`--${name}-listen`, address], cause, false);
  taken.close();
}
const healthPort = await freePort();
const running = await ready(["--health-listen", `127.0.0.1:${healthPort}`]);
await failing("a folder in use", 500, [], /in use by process \d+/, true);
running.kill("SIGKILL");
await once(running, "exit");
const again = await ready(["--health-listen", `127.0.0.1:${healthPort}`, "--lame-duck-seconds", "1"]);
const statusOf = async (): Promise<number> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status;
const isReadyAgain = (await statusOf()) === 200;
const signalMs = performance.now();
again.kill("SIGTERM");
while ((await statusOf()) === 200) await delay(1);
const faults = isReadyAgain ? [] : ["not ready after kill -9 of the first"];
row("SIGTERM until /readyz is 503", performance.now() - signalMs, 50, faults);
await once(again, "exit");
rmSync(dataDir, { recursive: true });
process.exit(failures === 0 ? 0 : 1);
