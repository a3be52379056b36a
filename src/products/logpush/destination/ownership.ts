import { sameHash } from "../../../control/access/secret.ts";
import { gzipSync } from "node:zlib";
import type { JobOwner } from "../job.ts";
import { deliver, bucketKeyOf, smallFile, type LogFile } from "./deliver.ts";
import { locationOf, type LogDestination, type S3Destination } from "./destination.ts";
import type { LogSender } from "./send.ts";

/** Proves that an owner of jobs can read a bucket: writes a file with a token there, which the owner sends back. */
export class BucketOwnership {
  readonly #hash: (text: string) => string;
  readonly #sender: LogSender;

  /** `hash` is keyed, and the same on all nodes. */
  constructor(hash: (text: string) => string, sender: LogSender) {
    this.#hash = hash;
    this.#sender = sender;
  }

  isToken(owner: JobOwner, destination: LogDestination, token: string): boolean {
    return sameHash(this.#token(owner, destination), token);
  }

  /** The token is derived from the owner and the location, so it need not be stored. */
  #token({ accountId, zoneId }: JobOwner, destination: LogDestination): string {
    return this.#hash(`Logpush ownership ${zoneId ?? accountId} ${locationOf(destination)}`);
  }

  /** Writes the file. Returns its name. Rejects with UploadFault. */
  async challenge(owner: JobOwner, destination: S3Destination, nowMs: number): Promise<string> {
    const token = this.#token(owner, destination);
    const name = `ownership-challenge-${this.#hash(`name ${token}`).slice(0, 8)}.txt`;
    const file = smallFile(name, "text", Buffer.from(token), nowMs);
    await deliver(this.#sender, destination, file);
    return bucketKeyOf(destination, file);
  }

  /** Uploads a small file, to see whether a destination accepts files. Rejects with UploadFault. */
  async tryOut(destination: LogDestination, nowMs: number): Promise<void> {
    await deliver(this.#sender, destination, testFile(nowMs));
  }
}

const testFile = (nowMs: number): LogFile =>
  smallFile("test.txt.gz", "gzip", gzipSync('{"content":"tests"}\n'), nowMs);
