import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { clock } from "../../../platform/timers/clock.ts";
import { MigrationError } from "../failure.ts";
import type { ApiResponse, Recorded } from "./client.ts";

/** Older answers are not reused, because the account may have changed since. */
const ageMsMax = 24 * 3_600_000;
const bytesMax = 512 * 1024 * 1024;

/**
 * The answers of an import, one line of JSON each, so that an interrupted import can continue. `reader` names the data
 * and the token: a file of another reader, or an old file, is discarded. Only its owner can read the file.
 */
export class ReadingJournal implements Recorded {
  readonly #file: string;
  readonly #answers = new Map<string, ApiResponse>();
  #bytes = 0;

  constructor(file: string, reader: readonly string[]) {
    this.#file = file;
    const head = createHash("sha256").update(JSON.stringify(reader)).digest("hex");
    if (!this.#load(head)) writeFileSync(file, `${head}\n`, { mode: 0o600 });
  }

  /** The number of answers from before the interruption. */
  get size(): number {
    return this.#answers.size;
  }

  find(path: string): ApiResponse | undefined {
    return this.#answers.get(path);
  }

  add(path: string, { contentType, entrypoint, body }: ApiResponse): void {
    const line = JSON.stringify([path, contentType, entrypoint, Buffer.from(body).toString("base64")]);
    this.#bytes += line.length;
    // A larger journal would cost more than reading again.
    if (this.#bytes <= bytesMax) appendFileSync(this.#file, `${line}\n`);
  }

  remove(): void {
    rmSync(this.#file, { force: true });
  }

  #load(head: string): boolean {
    if (!existsSync(this.#file)) return false;
    const { mtimeMs, size } = statSync(this.#file);
    if (size > bytesMax) throw new MigrationError(`${this.#file} is too large to continue from: delete it`);
    const [first, ...lines] = readFileSync(this.#file, "utf8").split("\n");
    if (first !== head || clock.now() - mtimeMs > ageMsMax) return false;
    const whole = lines.slice(0, -1); // the break may have cut the last line
    for (const line of whole) {
      const [path, contentType, entrypoint, body] = JSON.parse(line) as [
        string,
        string,
        string | null,
        string,
      ];
      this.#answers.set(path, { contentType, entrypoint, body: Buffer.from(body, "base64") });
    }
    writeFileSync(this.#file, `${[head, ...whole].join("\n")}\n`, { mode: 0o600 });
    this.#bytes = size;
    return true;
  }
}
