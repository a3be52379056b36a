import { execFile } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it, vi } from "vitest";
import { msOf } from "../../src/platform/object-log/stamps.ts";
import { parseSegmentPath } from "../../src/platform/object-log/segment.ts";
import { bankSum, openBank, startMoves, type Bank } from "../helpers/bank.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";

/** Recovery of objects and databases to a moment, from their shipped logs. */
const run = promisify(execFile);
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
const environment = { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_API_RATE_LIMIT: "0" };
const servers: ServerProcess[] = [];
afterAll(async () => {
  for (const { process: child, exited } of servers) {
    child.kill("SIGKILL");
    await exited;
  }
  rmSync(folder, { recursive: true });
});

async function start(name: string, place: string, ...more: string[]): Promise<ServerProcess> {
  const log = ["--backup-folder", place, "--backup-log", "1s", "--object-log", "1s", ...more];
  const server = await serve(["--data-dir", join(folder, name), ...log], environment);
  servers.push(server);
  return server;
}
const timeTravel = (bank: Bank): string => `/d1/database/${bank.database}/time_travel`;
/** Waits until the clock shows another millisecond. */
const nextMs = async (): Promise<number> => {
  const ms = Date.now();
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(ms + 1), { interval: 1 });
  return ms;
};
const upTo = (n: number): number[] => Array.from({ length: n + 1 }, (_, i) => i);

it("restores a D1 database to each mark: exactly the writes before it, also back again", async () => {
  const bank = await openBank(await start("marks", join(folder, "marks-log")));
  const marks: number[] = [];
  for (let n = 0; n < 30; n++) {
    await bank.move("d1", "-", n);
    marks.push(await nextMs());
  }
  const undo: string[] = [];
  for (const n of [29, 12, 0, 7, 28]) {
    const timestamp = new Date(marks[n]!).toISOString();
    const { result } = await bank.api("GET", `${timeTravel(bank)}/bookmark?timestamp=${timestamp}`);
    const { bookmark } = result as { bookmark: string };
    const restored = await bank.api("POST", `${timeTravel(bank)}/restore?bookmark=${bookmark}`);
    expect(restored.status, restored.text).toBe(200);
    undo.push((restored.result as { previous_bookmark: string }).previous_bookmark);
    const { sum, moves } = await bank.facts("d1", "-");
    expect(sum).toBe(bankSum);
    expect(moves).toEqual(upTo(n));
  }
  expect((await bank.api("POST", `${timeTravel(bank)}/restore?bookmark=${undo[0]}`)).status).toBe(200);
  expect((await bank.facts("d1", "-")).moves).toHaveLength(30);
  await bank.move("d1", "-", 1000);
  for (const query of [
    "timestamp=2000-01-01T00:00:00Z",
    "timestamp=2999-01-01T00:00:00Z",
    `bookmark=${"0".repeat(8)}-${"0".repeat(8)}-${"0".repeat(8)}-${"0".repeat(32)}`,
    "timestamp=yesterday",
  ])
    expect((await bank.api("POST", `${timeTravel(bank)}/restore?${query}`)).status, query).toBe(400);
  expect((await bank.facts("d1", "-")).moves).toHaveLength(31);
});

/** The processes of cells that have folders of objects. */
const objectCells = (dataDir: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/mountinfo`, "latin1").includes(`${dataDir}/objects`);
      } catch {
        return false;
      }
    })
    .map(Number);

/** The moment of the last segment: what was acknowledged before is at the place. */
const shippedMs = (place: string): number =>
  Math.max(
    ...readdirSync(join(place, "object-log"), { recursive: true }).map((path) => {
      const name = parseSegmentPath(`/${String(path)}`);
      return name === undefined ? 0 : msOf(name.stamp);
    }),
  );

/**
 * Moves money in objects over fetch, methods and messages of WebSockets, and in a database, while the cells are killed three times and
 * then everything. Restores from the place, and returns what was acknowledged and not restored.
 */
async function loseMachine(name: string, more: string[]): Promise<{ ms: number; place: string }[]> {
  const [dataDir, log, restored] = [join(folder, name), join(folder, `${name}-log`), `${name}-restored`];
  const server = await start(name, log, ...more);
  const bank = await openBank(server);
  const writers = ["object", "rpc", "socket", "d1"].map((place) => ({
    place,
    ...startMoves(bank, place, place),
  }));
  for (let round = 1; round <= 4; round++) {
    const counts = writers.map(({ acknowledged }) => acknowledged.length);
    const isOn = (): void =>
      writers.forEach(({ acknowledged }, i) => expect(acknowledged.length).toBeGreaterThan(counts[i]! + 8));
    await vi.waitFor(isOn);
    if (round < 4) for (const pid of objectCells(dataDir)) process.kill(pid, "SIGKILL");
  }
  process.kill(server.ready.pid, "SIGKILL");
  await server.exited;
  await Promise.all(writers.map(async ({ stop }) => stop()));
  rmSync(dataDir, { recursive: true });
  await run(process.execPath, [
    ...["bin/selvedge.js", "restore", log, "--to-time", "now"],
    ...["--data-dir", join(folder, restored)],
  ]);
  const again = await openBank(await start(restored, `${log}-2`), bank.database);
  const lost: { ms: number; place: string }[] = [];
  for (const { place, acknowledged, timesMs } of writers) {
    const { sum, moves } = await again.facts(place, place);
    expect(sum).toBe(bankSum);
    const there = new Set(moves);
    for (const [i, n] of acknowledged.entries()) if (!there.has(n)) lost.push({ ms: timesMs[i]!, place });
    await again.move(place, place, 1_000_000);
  }
  return lost;
}

it("loses nothing that was acknowledged, when answers wait until their writes are shipped", async () => {
  expect(await loseMachine("first", ["--object-log-first"])).toEqual([]);
});

it("loses nothing that was acknowledged before the shipped point, when cells and then the machine are lost", async () => {
  const lost = await loseMachine("later", []);
  const shipped = shippedMs(join(folder, "later-log"));
  for (const { ms, place } of lost)
    expect(ms, place).toBeGreaterThanOrEqual(shipped - (place === "rpc" || place === "socket" ? 500 : 0));
});
