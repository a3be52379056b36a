import { readFileSync, readdirSync, rmSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { startHosting, uploadForm } from "../runtime/platform.ts";

/** Acknowledged writes of objects exist after a SIGKILL, of their cell and of the whole program. */
const code = `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.instance = crypto.randomUUID();
    ctx.storage.sql.exec("create table if not exists writes (writer text, n int, primary key (writer, n))");
  }
  write(writer, n) { this.ctx.storage.sql.exec("insert into writes values (?, ?)", writer, n); return this.instance; }
  all() { return this.ctx.storage.sql.exec("select writer, count(*) as count, max(n) as last from writes group by writer").toArray(); }
  spin() { for (;;); }
  plan(ms) { return this.ctx.storage.setAlarm(Date.now() + Number(ms)); }
  alarm({ retryCount }) { this.write("alarm " + this.ctx.id.name, retryCount); }
}
export default { async fetch(request, env) {
  const [, name, method, ...args] = new URL(request.url).pathname.split("/");
  try { return Response.json({ ok: await env.COUNTERS.getByName(name)[method](...args) }); }
  catch (error) { return Response.json({ error: error.message, retryable: error.retryable === true }); }
} };`;
const bindings = [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" }];
const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } };

interface CallResult {
  ok?: unknown;
  error?: string;
  retryable?: boolean;
}
type Written = { writer: string; count: number; last: number }[];

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("an object's cell is killed again and again while it is written to: no acknowledged write is lost or doubled", async () => {
  const hosting = await startHosting();
  try {
    await hosting.deploy("counters", { code, bindings, metadata });
    let ended = 0;
    const ask = async (path: string): Promise<CallResult> => {
      const { status, body } = await hosting.ask("counters", path);
      if (status === 200) return JSON.parse(body) as CallResult;
      // The script ran beside its objects. It may have written, so it is not run again.
      expect({ status, body }).toEqual({
        status: 500,
        body: expect.stringContaining("error 1101") as string,
      });
      ended++;
      return {};
    };
    const acknowledged = new Map<string, Set<number>>();
    const instances = new Set<unknown>();
    const over = new AbortController();
    const write = async (writer: string): Promise<void> => {
      const own = new Set<number>();
      acknowledged.set(writer, own);
      for (let n = 0; !over.signal.aborted; n++) {
        const { ok } = await ask(`/one/write/${writer}/${n}`);
        if (ok !== undefined) own.add(n);
        if (ok !== undefined) instances.add(ok);
      }
    };
    const writers = ["a", "b", "c"].map(write);
    const counts = () => [...acknowledged.values()].map(({ size }) => size);
    for (let round = 1; round <= 4; round++) {
      const before = counts();
      await expect.poll(() => counts().every((count, i) => count > before[i]! + 3)).toBe(true);
      for (const pid of hosting.services.objectCells.pids) process.kill(pid, "SIGKILL");
    }
    over.abort();
    await Promise.all(writers);
    expect(ended).toBeLessThanOrEqual(4 * writers.length);
    // The last kill may not be noticed yet, and then it ends the first reader, too.
    let written: Written | undefined;
    while (written === undefined) written = (await ask("/one/all")).ok as Written | undefined;
    for (const { writer, count } of written) {
      const own = acknowledged.get(writer)!;
      // A write whose answer was lost may be there too: at most one for each round.
      expect(count).toBeGreaterThanOrEqual(own.size);
      expect(count - own.size).toBeLessThanOrEqual(4);
    }
    expect(instances.size).toBeGreaterThan(3);
  } finally {
    await hosting.close(0);
  }
});

it("an object without end is reset with the public text, and only it is alone after that", async () => {
  const hosting = await startHosting({ scriptCpuMs: 1500 });
  try {
    await hosting.deploy("counters", { code, bindings, metadata });
    const ask = async (path: string): Promise<CallResult> =>
      JSON.parse((await hosting.ask("counters", path)).body) as CallResult;
    expect((await ask("/good/write/a/1")).error).toBeUndefined();
    const reset = { error: "Durable Object exceeded its CPU time limit and was reset.", retryable: false };
    expect(await ask("/bad/spin")).toEqual(reset);
    expect((await ask("/good/all")).ok).toEqual([{ writer: "a", count: 1, last: 1 }]);
    expect(await ask("/bad/spin")).toEqual(reset);
    expect((await ask("/good/all")).ok).toEqual([{ writer: "a", count: 1, last: 1 }]);
  } finally {
    await hosting.close(0);
  }
});

async function call(server: ServerProcess, method: string, path: string, body?: FormData) {
  const url = `${server.ready.api}/accounts/${server.ready.account_id}${path}`;
  const headers = { authorization: `Bearer ${ownerToken}` };
  const response = await fetch(url, { method, headers, ...(body && { body }) });
  expect(response.status).toBeLessThan(300);
  return ((await response.json()) as { result: Record<string, string> }).result;
}

it("objects and their alarms survive a SIGKILL of the program, and end with it", async () => {
  const environment = { SELVEDGE_API_TOKEN: ownerToken };
  const first = await serve(["--data-dir", folder], environment);
  await call(first, "PUT", "/workers/scripts/counters", uploadForm({ code, bindings, metadata }));
  const { subdomain } = await call(first, "GET", "/workers/subdomain");
  const host = `counters.${subdomain}.workers.localhost`;
  const ask = async ({ ready }: ServerProcess, path: string): Promise<CallResult> =>
    JSON.parse((await requestEdge(ready.edge, host, path)).body) as CallResult;
  expect((await ask(first, "/one/write/a/1")).error).toBeUndefined();
  expect((await ask(first, "/one/write/a/2")).error).toBeUndefined();
  for (const name of ["past", "soon"])
    expect(await ask(first, `/${name}/plan/${name === "past" ? 500 : 8000}`)).toEqual({});
  first.process.kill("SIGKILL");
  await first.exited;
  const second = await serve(["--data-dir", folder], environment);
  expect((await ask(second, "/one/all")).ok).toEqual([{ writer: "a", count: 2, last: 2 }]);
  for (const name of ["past", "soon"])
    await expect
      .poll(async () => (await ask(second, `/${name}/all`)).ok)
      .toEqual([{ writer: `alarm ${name}`, count: 1, last: 0 }]);
  second.process.kill("SIGTERM");
  await second.exited;
  expect(readdirSync(folder)).toContain("objects");
  expect(usersOf(folder)).toEqual([]);
});

/** Commands of processes that have a file of a folder open. */
function usersOf(path: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/mountinfo`, "latin1").includes(`${path}/objects`);
      } catch {
        return false;
      }
    });
}
