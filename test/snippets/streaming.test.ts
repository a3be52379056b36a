import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { ask, createZone, example, listenLocally, type LocalServer } from "./example-platform.ts";

/** Bodies stream through a snippet in constant memory. */
const mebibyte = 1024 * 1024;
/** Garbage that is not collected yet may be about 30 MB, in the processes together. */
const bodyBytes = 100 * mebibyte;
const chunk = Buffer.alloc(64 * 1024, "a");
chunk[1000] = "@".charCodeAt(0);

let platform: ServerProcess;
let origin: LocalServer;

beforeAll(async () => {
  origin = await listenLocally((_request, response) => {
    response.writeHead(200, { "content-length": bodyBytes });
    let sent = 0;
    const send = (): void => {
      while (sent < bodyBytes) {
        sent += chunk.length;
        if (!response.write(chunk)) {
          response.once("drain", send);
          return;
        }
      }
      response.end();
    };
    send();
  });
  // The test is about memory, so the CPU limit allows for a busy machine.
  platform = await serve(["--ephemeral", "--api-token", ownerToken, "--snippet-cpu-ms", "10000"]);
});
afterAll(async () => {
  platform.process.kill("SIGTERM");
  await platform.exited;
  origin.close();
});

/** Resident memory of a process and its descendants, in bytes. */
function residentBytes(pid: number): number {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, "utf8");
        const number = (key: string): number =>
          Number(new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
        return [{ pid: Number(name), parent: number("PPid"), bytes: number("VmRSS") * 1024 }];
      } catch {
        return []; // ended in the meantime
      }
    });
  const sum = (of: number): number =>
    processes
      .filter((each) => each.parent === of)
      .reduce((bytes, each) => bytes + each.bytes + sum(each.pid), 0);
  return (processes.find((each) => each.pid === pid)?.bytes ?? 0) + sum(pid);
}

it.runIf(process.platform === "linux")("rewrites 100 MB in constant memory", async () => {
  await createZone(platform.ready.api, "stream.example", origin.port, [
    { name: "stream", code: example("stream-rewrite") },
  ]);
  const read = async (): Promise<{ bytes: number; digest: string; residentMax: number }> => {
    const response = await ask(platform.ready.edge, "stream.example", {});
    expect(response.statusCode).toBe(200);
    const digest = createHash("sha256");
    let [bytes, residentMax, sampledAt] = [0, 0, 0];
    for await (const part of response as AsyncIterable<Buffer>) {
      digest.update(part);
      bytes += part.length;
      if (bytes < sampledAt) continue;
      sampledAt = bytes + 2 * mebibyte;
      residentMax = Math.max(residentMax, residentBytes(platform.ready.pid));
    }
    return { bytes, digest: digest.digest("hex"), residentMax };
  };
  const rewritten = Buffer.from(chunk);
  rewritten[1000] = "#".charCodeAt(0);
  const expected = createHash("sha256");
  for (let i = 0; i < bodyBytes / chunk.length; i++) expected.update(rewritten);

  await read(); // everything is loaded now
  const before = residentBytes(platform.ready.pid);
  const { bytes, digest, residentMax } = await read();
  expect([bytes, digest]).toEqual([bodyBytes, expected.digest("hex")]);
  expect(residentMax - before).toBeLessThan(bodyBytes / 2);
});
