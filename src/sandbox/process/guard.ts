import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";

/**
 * The kernel ends a cell with this program (`--die-with-parent`, `--pdeathsig`), but only from the moment at
 * which each process of the cell has asked for it. If this program is killed before that, bubblewrap goes on to
 * start workerd, or waits for its parent without end. The guard closes this gap: a shell that reads from a pipe
 * whose other end only this program has, and kills the cells' processes when it ends. A forked process has that
 * end, too, until it runs another program, which has the token among its arguments. So nothing is missed.
 *
 * The processes are found by the token, which is no argument of the guard's own commands. The command line of
 * a process is empty for a moment when it starts a program, so the guard ends only when it found none three times.
 */
const script = `trap '' HUP INT TERM
while read -r line; do :; done
empty=0
while [ "$empty" -lt 3 ]; do
  empty=$((empty + 1))
  for file in $(printf '%s\\n' "$TOKEN" | grep -alFf - /proc/[0-9]*/cmdline 2> /dev/null); do
    pid=\${file#/proc/}
    kill -KILL "\${pid%/cmdline}" 2> /dev/null && empty=0
  done
  sleep 0.05
done`;

const token = randomUUID();
let guard: ChildProcess | undefined;

/**
 * Starts the guard of this program's cells unless it runs, and returns the token that every process of a cell
 * must have among its arguments.
 */
export function guardToken(): string {
  guard ??= startGuard();
  return token;
}

function startGuard(): ChildProcess {
  const started = spawn("/bin/sh", ["-c", script], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", TOKEN: token },
    // A session of its own: a signal for this program's group must not end it first.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const forget = (): void => {
    if (guard === started) guard = undefined;
  };
  // Without it, cells still end as the kernel was asked to end them.
  started.once("error", forget).once("exit", forget);
  started.stdin.on("error", forget);
  started.unref();
  (started.stdin as unknown as { unref(): void }).unref();
  return started;
}
