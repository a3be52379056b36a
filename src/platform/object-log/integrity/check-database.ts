import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { BackupError, damaged } from "../../storage/archive/errors.ts";
import { within } from "../../util/ends-within.ts";
import { moduleUrl } from "../../util/module-url.ts";

/** Enough for a database of 10 GiB on a slow disk. */
const checkMs = 5 * 60_000;
/** Maximum number of concurrent checks. Each is a process of about 50 MB. */
const processesMax = 4;

const modulePath = fileURLToPath(moduleUrl("platform/object-log/integrity/check-process"));
let running = 0;
const waiting: (() => void)[] = [];

/**
 * Throws a BackupError unless a file is an intact database. Its schema and rows come from a customer, and a
 * check by SQLite can be neither interrupted nor limited in time, so each check is a process of its own.
 */
export async function checkDatabase(path: string, name: string): Promise<void> {
  if (running < processesMax) running++;
  else await new Promise<void>((go) => waiting.push(go)); // takes the place of one that ends
  try {
    const fault = await askProcess(path);
    if (fault !== null) throw damaged(`the log of ${name}`, `gives a database that is not whole: ${fault}`);
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

/** Why the file is not an intact database; null if it is. */
async function askProcess(path: string): Promise<string | null> {
  const child = fork(modulePath, [], {
    env: {},
    cwd: "/",
    execArgv: ["--max-old-space-size=128", "--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const ended = once(child, "exit").then(() => {
    throw new Error("the process of the check has ended");
  });
  try {
    child.send(resolve(path), () => {}); // if the process has ended, `ended` rejects
    const [fault] = (await within(checkMs, Promise.race([once(child, "message"), ended]))) as [string | null];
    return fault;
  } catch (error) {
    throw new BackupError("The check of the database failed or took too long.", { cause: error });
  } finally {
    child.kill("SIGKILL");
  }
}
