import { createHash } from "node:crypto";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

/** A minimal server for uploads that hashes a raw body and writes it to a file. */
const folder = mkdtempSync(join(tmpdir(), "selvedge-bare-"));
const server = createServer((request, response) => {
  const hash = createHash("sha256");
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  pipeline(request, hashing, createWriteStream(join(folder, "upload"), { flush: true })).then(
    () => response.end(hash.digest("hex")),
    () => response.destroy(),
  );
});
server.listen(0, "127.0.0.1", () => process.stdout.write(String((server.address() as AddressInfo).port)));
process.once("SIGTERM", () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
