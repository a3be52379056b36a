import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { dirname } from "node:path";
import { InvalidForImage } from "./invalid.ts";
import type { Job, Reply, Request } from "./job.ts";
import { run } from "./pipeline.ts";

/** The image process: takes jobs from its parent, and ends with it. */
const reply = (message: Reply): void => void process.send?.(message);

process.on("message", ({ id, job }: Request) => void work(id, job));
process.on("disconnect", () => process.exit(0));
// The next one starts with what is compiled by now.
setTimeout(() => flushCompileCache(), 500).unref();

async function work(id: number, job: Job): Promise<void> {
  try {
    const { bytes, ...made } = await run(job);
    const isKept = job.target !== undefined && keep(bytes, job.target);
    reply({ id, result: { ...made, bytes: isKept ? undefined : bytes, sizeBytes: bytes.length } });
  } catch (error) {
    const message = error instanceof Error ? error.message.split("\n", 1)[0]! : String(error);
    reply({ id, fault: { kind: kindOf(error, message), message } });
  }
}

/** Puts a result in its place, whole or not at all. False where that cannot be: a full disk costs nobody an answer. */
function keep(bytes: Buffer, target: string): boolean {
  const temporary = `${target}.${process.pid}.tmp`;
  const write = (): void => {
    writeFileSync(temporary, bytes, { mode: 0o600 });
    renameSync(temporary, target);
  };
  try {
    try {
      write();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
      write();
    }
    return true;
  } catch {
    rmSync(temporary, { force: true });
    return false;
  }
}

function kindOf(error: unknown, message: string): Extract<Reply, { fault: object }>["fault"]["kind"] {
  if (error instanceof InvalidForImage) return "invalid";
  if (/timeout/i.test(message)) return "time";
  // What the library says of its own arguments is our fault; everything else is the picture's.
  return error instanceof TypeError || error instanceof RangeError || message.startsWith("Expected ")
    ? "internal"
    : "undecodable";
}
