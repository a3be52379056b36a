import { fork } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { canBeReachedByNobody, cellUser } from "../../../sandbox/process/launch.ts";
import { moduleUrl } from "../../../platform/util/module-url.ts";
import { objectErrors } from "../../scripts/versions/object-errors.ts";
import { queryLimits, type QueryJob, type QueryReply, type QueryResult } from "./job.ts";

/** Maximum number of concurrent queries of an account, and of all. Each takes a process of about 50 MB. */
const accountMax = 2;
const totalMax = 4;

type Question = Pick<QueryJob, "sql" | "params">;

/** Runs read-only queries of the databases of objects, each in a process of its own. */
export class ObjectQueries {
  readonly #running = new Map<string, number>();
  #total = 0;

  /** Resolves with at most `queryLimits` of rows. Rejects with an error for callers of the API. */
  async query(accountId: string, file: string, question: Question): Promise<QueryResult> {
    const running = this.#running.get(accountId) ?? 0;
    if (running >= accountMax || this.#total >= totalMax) throw objectErrors.queriesBusy();
    this.#running.set(accountId, running + 1);
    this.#total++;
    try {
      return await read(file, question);
    } finally {
      this.#total--;
      const left = this.#running.get(accountId)! - 1;
      if (left === 0) this.#running.delete(accountId);
      else this.#running.set(accountId, left);
    }
  }
}

/** A file without a log is read without locks. If the file has changed meanwhile, it is read again with locks. */
async function read(file: string, question: Question): Promise<QueryResult> {
  const before = closedState(file);
  const isClosed = before !== undefined;
  const reply = await ask({ ...question, file, isClosed });
  const isStale = isClosed && closedState(file) !== before;
  const final = isStale ? await ask({ ...question, file, isClosed: false }) : reply;
  if ("error" in final) throw objectErrors.query(final.error);
  return JSON.parse(final.result) as QueryResult;
}

/** A text that differs after each write to a database that no process has open; undefined if a process has it open. */
function closedState(file: string): string | undefined {
  if (existsSync(`${file}-wal`)) return undefined;
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return undefined; // deleted meanwhile
  const { ino, size, mtimeNs } = found;
  return `${ino} ${size} ${mtimeNs}`;
}

/** Resident memory of a process; 0 if unknown. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]) * pageBytes;
  } catch {
    return 0;
  }
}
const pageBytes = 4096;
const lookEveryMs = 50;

const modulePath = fileURLToPath(moduleUrl("workers/objects/query/process"));

async function ask(job: QueryJob): Promise<QueryReply> {
  const user = cellUser();
  // The files belong to the user of cells. A flaw of SQLite must not reach what this process may do.
  const mayDrop = user !== undefined && [process.execPath, modulePath].every(canBeReachedByNobody);
  const child = fork(modulePath, [], {
    env: {},
    cwd: "/",
    execArgv: ["--max-old-space-size=128", "--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    ...(mayDrop && { uid: user, gid: user }),
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), queryLimits.timeMs);
  const watch = setInterval(() => {
    if (residentBytes(child.pid) > queryLimits.memoryBytes) child.kill("SIGKILL");
  }, lookEveryMs);
  try {
    return await new Promise<QueryReply>((resolve, reject) => {
      child.once("message", (reply) => resolve(reply as QueryReply));
      // A process that cannot be started reports it twice: by itself, and by `send`.
      child.on("error", reject);
      child.once("exit", (_code, signal) =>
        reject(signal === "SIGKILL" ? objectErrors.queryTime() : objectErrors.query("The query was ended.")),
      );
      child.send(job);
    });
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    child.kill("SIGKILL");
  }
}
