import { execFile } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it, vi } from "vitest";
import { bankSum, openBank, startMoves } from "../helpers/bank.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";

/** Backups of Durable Objects and D1 databases that are written meanwhile. */
const run = promisify(execFile);
const selvedge = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse((await run(process.execPath, ["bin/selvedge.js", ...args, "--json"])).stdout);
const environment = { SELVEDGE_API_TOKEN: ownerToken };
const folder = temporaryFolder();
chmodSync(folder, 0o711); // so that the user of cells can pass
const dataDir = join(folder, "data");
const restored = join(folder, "restored");
const target = join(folder, "backup");
let server: ServerProcess | undefined;
afterAll(async () => {
  server?.process.kill("SIGKILL");
  await server?.exited;
  rmSync(folder, { recursive: true });
});

it("has one state of each object and of each database, with all that was acknowledged before", async () => {
  server = await serve(["--data-dir", dataDir], environment);
  const bank = await openBank(server);
  const places = [
    { place: "object", name: "a" },
    { place: "rpc", name: "b" },
    { place: "d1", name: "-" },
  ];
  const writers = places.map(({ place, name }) => ({
    place,
    name,
    ...startMoves(bank, place, name),
  }));
  await vi.waitFor(() =>
    expect(Math.min(...writers.map(({ acknowledged }) => acknowledged.length))).toBeGreaterThan(20),
  );
  const before = writers.map(({ acknowledged }) => acknowledged.length);
  const made = await selvedge("backup", target, "--data-dir", dataDir);
  expect(made["objects"]).toBe(3);
  expect(JSON.stringify(made["left_out"])).not.toMatch(/object|D1/i);
  await Promise.all(writers.map(async ({ stop }) => stop()));
  server.process.kill("SIGTERM");
  await server.exited;
  await selvedge("backup", "verify", target);
  await selvedge("restore", target, "--data-dir", restored);
  server = await serve(["--data-dir", restored], environment);
  const again = await openBank(server, bank.database);
  for (const [i, { place, name, acknowledged }] of writers.entries()) {
    const { sum, moves } = await again.facts(place, name);
    expect(sum).toBe(bankSum);
    expect(moves.length).toBeGreaterThanOrEqual(before[i]!);
    expect(moves).toEqual(acknowledged.slice(0, moves.length));
    await again.move(place, name, 1_000_000);
    expect((await again.facts(place, name)).moves).toContain(1_000_000);
  }
});

it("names a damaged part of an object", async () => {
  const objects = join(target, "objects");
  const [namespace] = readdirSync(objects);
  const name = readdirSync(join(objects, namespace!))[0];
  const path = join(objects, namespace!, name!);
  const bytes = readFileSync(path);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
  for (const args of [
    ["backup", "verify", target],
    ["restore", target, "--data-dir", join(folder, "x")],
  ])
    await expect(selvedge(...args)).rejects.toThrow(`objects/${namespace}/${name} does not match its digest`);
});
