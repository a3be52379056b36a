import { closeSync, openSync, readFileSync } from "node:fs";
import type { Logger } from "pino";

const checkMs = 1000;
/** npm starts a shell, which starts the wrapper for an older Node, which starts the server. */
const generationsMax = 3;

/**
 * Sends SIGTERM to this process once the npm that started it was killed (`npx selvedge`, `npm start`), or the terminal
 * that it prints to is gone. npm passes on the signals that it receives, but not its own death, and its shell goes on
 * waiting. That npm is found in /proc, so only on Linux.
 */
export function stopWhenOrphaned(logger: Logger): void {
  const stop = (cause: string): void => {
    logger.info({ cause }, "the program that started this one has ended");
    process.kill(process.pid, "SIGTERM");
  };
  if (process.env["npm_command"] !== undefined) watchNpm(() => stop("npm"));
  // Elsewhere, SIGHUP means only that files are read again. nohup gives the program another output.
  if (process.stdout.isTTY && hasTerminal()) process.on("SIGHUP", () => hasTerminal() || stop("terminal"));
}

function watchNpm(stop: () => void): void {
  let child = process.pid;
  let parent: number | undefined = process.ppid;
  for (let generation = 1; parent !== undefined && !isNpm(parent); generation++) {
    if (generation === generationsMax) return;
    child = parent;
    parent = parentOf(child);
  }
  if (parent === undefined) return;
  const timer = setInterval(() => {
    const now = parentOf(child);
    if (now === parent) return;
    clearInterval(timer);
    // A shell that ends before npm has left the server in the background.
    if (now !== undefined) stop();
  }, checkMs).unref();
}

/** npm shows its command as its title. */
const isNpm = (pid: number): boolean =>
  /^npm(?:$|[ \0])|\/np[mx]-cli\.js\0/.test(read(`/proc/${pid}/cmdline`));

/** The parent of a process; undefined if the process has ended. */
function parentOf(pid: number): number | undefined {
  const [, parent] = /\nPPid:\s+(\d+)/.exec(read(`/proc/${pid}/status`)) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
