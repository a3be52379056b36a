import { closeSync, mkdirSync, openSync, readSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { dirname } from "node:path";
import { InvalidForImage } from "./invalid.ts";
import type { ImageJob, Picture, ImageReply, Request } from "./job.ts";
import { run } from "./pipeline.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** The image process: runs jobs of its parent, and exits with it. */
const reply = (message: ImageReply): void => {
  process.send?.(message);
};

process.on("message", ({ id, job }: Request) => {
  unawaited(work(id, job));
});
process.on("disconnect", () => process.exit(0));
// The next process loads this compiled code.
setTimeout(() => flushCompileCache(), 500).unref();

async function work(id: number, job: ImageJob): Promise<void> {
  try {
    const { bytes, ...made } = await run(job);
    const isKept = job.target !== undefined && keep(bytes, job.target);
    reply({ id, result: { ...made, bytes: isKept ? undefined : bytes, sizeBytes: bytes.length } });
  } catch (error) {
    const message = error instanceof Error ? error.message.split("\n", 1)[0]! : String(error);
    reply({ id, fault: { kind: kindOf(error, message, job.picture), message } });
  }
}

/**
 * Writes a result to its path, complete or not at all. False when the write fails: a full disk must not fail
 * the response.
 */
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

/** Messages of libvips about the machine rather than the picture. */
const machinePattern = /out of memory|cannot allocate|no space left|too many open files/i;

function kindOf(
  error: unknown,
  message: string,
  picture: Picture,
): Extract<ImageReply, { fault: object }>["fault"]["kind"] {
  if (error instanceof InvalidForImage) return "invalid";
  if (/timeout/i.test(message)) return "time";
  const unreadable = filesOf(picture)
    .map(readFault)
    .find((code) => code !== undefined);
  if (unreadable !== undefined) return unreadable === "ENOENT" ? "gone" : "internal";
  if ((error as NodeJS.ErrnoException).code !== undefined || machinePattern.test(message)) return "internal";
  // Errors about arguments are internal; all others are the picture's fault.
  return error instanceof TypeError || error instanceof RangeError || message.startsWith("Expected ")
    ? "internal"
    : "undecodable";
}

/** Why a file cannot be read; undefined when it can. */
function readFault(path: string): string | undefined {
  try {
    const file = openSync(path, "r");
    try {
      readSync(file, Buffer.alloc(1));
    } finally {
      closeSync(file);
    }
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/** The files of a picture and of the pictures drawn on it. */
function filesOf({ path, intermediateCopy, steps }: Picture): string[] {
  const overlays = steps.flatMap((step) => (step.kind === "draw" ? filesOf(step.overlay) : []));
  return [path, ...(intermediateCopy === undefined ? [] : [intermediateCopy]), ...overlays];
}
