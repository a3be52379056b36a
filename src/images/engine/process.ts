import { InvalidForImage } from "./invalid.ts";
import type { Job, Reply, Request } from "./job.ts";
import { run } from "./pipeline.ts";

/** The image process: takes jobs from its parent, and ends with it. */
const reply = (message: Reply): void => void process.send?.(message);

process.on("message", ({ id, job }: Request) => void work(id, job));
process.on("disconnect", () => process.exit(0));

async function work(id: number, job: Job): Promise<void> {
  try {
    reply({ id, result: await run(job) });
  } catch (error) {
    const message = error instanceof Error ? error.message.split("\n", 1)[0]! : String(error);
    reply({ id, fault: { kind: kindOf(error, message), message } });
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
