import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { canMakeDisks, fillDisk, newDisk } from "../helpers/disk.ts";
import { serve, type ServerProcess } from "../helpers/process.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { callerOf, everyWrite, type Answered, type Call } from "../helpers/writes.ts";

const mebibyte = 1024 * 1024;
const environment = {
  SELVEDGE_ACCOUNT_ID: "0123456789abcdef0123456789abcdef",
  SELVEDGE_API_TOKEN: "owner-token-for-tests",
  SELVEDGE_API_RATE_LIMIT: "0",
};

const show = (kind: string, { status, text }: Answered): string => `${kind}: ${status} ${text.slice(0, 300)}`;

async function readiness({ ready }: ServerProcess): Promise<unknown> {
  const answer = await fetch(new URL("/readyz", ready.api));
  return [answer.status, await answer.json()];
}

/** All messages in the queue. */
async function pull(call: Call, queue: string): Promise<string[]> {
  const bodies: string[] = [];
  for (;;) {
    const { result } = await call("POST", `${queue}/messages/pull`, { batch_size: 100 });
    const { messages } = result as { messages: { body: string }[] };
    if (messages.length === 0) return bodies;
    bodies.push(...messages.map(({ body }) => body));
  }
}

it.skipIf(!canMakeDisks)(
  "on a full disk every write gets 507 or is durable, and the platform recovers by itself",
  { timeout: 180_000 },
  async () => {
    const disk = await newDisk(64 * mebibyte);
    const args = ["--data-dir", join(disk.inside, "data")];
    let server = await serve(args, environment, disk.enter);
    onTestFinished(() => void server.process.kill("SIGKILL"));
    let call = callerOf(server.ready.api);
    const account = server.ready.account_id;
    const png = await pngOf(fourColors(64, 48));
    const { writes, queue, workflow, script } = await everyWrite(call, account, {
      png,
      largeBytes: mebibyte,
    });
    const { subdomain } = (await call("GET", `/accounts/${account}/workers/subdomain`)).result as {
      subdomain: string;
    };
    const made = new Set<string>();
    const messages = new Set<string>();
    let n = 0;
    const send = async ({ kind, send: write, made: pathOf }: (typeof writes)[number]): Promise<Answered> => {
      const answer = await write(++n);
      if (answer.status >= 300) return answer;
      if (pathOf !== undefined) made.add(pathOf(n, answer));
      if (kind === "message") messages.add(`message ${n}`);
      return answer;
    };
    const sendAll = async (): Promise<string[]> => {
      const faults: string[] = [];
      for (const write of writes) {
        const answer = await send(write);
        if (answer.status >= 300) faults.push(show(write.kind, answer));
      }
      return faults;
    };
    const areMade = async (): Promise<string[]> => {
      const missing: string[] = [];
      for (const path of made) {
        const { status } = await call("GET", path);
        if (status !== 200) missing.push(`${status} ${path}`);
      }
      return missing;
    };
    expect(await sendAll()).toEqual([]);
    await call("POST", `${workflow}/instances`, { id: "across", params: { sleep: "5 seconds" } });

    fillDisk(join(disk.outside, "filler"), 1);
    // Writes succeed while the log has space left, so repeat until each kind has been rejected.
    const untried = new Set(writes.map(({ kind }) => kind));
    while (untried.size > 0) {
      for (const write of writes) {
        const answer = await send(write);
        if (answer.status < 300) continue;
        untried.delete(write.kind);
        const results = [answer.status, answer.errors[0]?.code === 5453 || answer.errors[0]?.code === 10507];
        expect([show(write.kind, answer), ...results]).toEqual([show(write.kind, answer), 507, true]);
        expect(answer.headers.get("retry-after")).toBe("60");
        expect(answer.text).not.toContain(disk.inside);
      }
    }
    expect(await readiness(server)).toEqual([
      503,
      { status: "unavailable", not_ready: ["database", "disk"] },
    ]);
    expect((await fetch(new URL("/healthz", server.ready.api))).status).toBe(200);
    // Reads still work.
    expect(await areMade()).toEqual([]);
    expect((await requestEdge(server.ready.edge, `${script}.${subdomain}.workers.localhost`)).body).toBe(
      "hello",
    );

    rmSync(join(disk.outside, "filler"));
    await expect.poll(() => readiness(server)).toEqual([200, { status: "ok" }]);
    // The workflow engine notices the free space at its next attempt to write.
    await expect.poll(sendAll).toEqual([]);
    expect(await areMade()).toEqual([]);
    await expect
      .poll(async () => (await call("GET", `${workflow}/instances/across`)).result.status)
      .toBe("complete");

    server.process.kill("SIGKILL");
    await server.exited;
    server = await serve(args, environment, disk.enter);
    call = callerOf(server.ready.api);
    expect(await areMade()).toEqual([]);
    expect(new Set(await pull(call, queue))).toEqual(messages);
  },
);
