import { spawnSync } from "node:child_process";
import { expect, it, onTestFinished } from "vitest";
import { startPostgres } from "./helpers/postgres.ts";
import { serve, temporaryFolder } from "./helpers/process.ts";
import { startTestServer } from "./helpers/server.ts";
import { callerOf } from "./helpers/writes.ts";

const nodesOf = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
  spawnSync(process.execPath, ["bin/selvedge.js", "nodes", ...args], { encoding: "utf8" });

it("the API lists the nodes to the account of the owner only", async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close(1000));
  const { body } = await server.call("GET", `/accounts/${server.ready.account_id}/edge/nodes`);
  expect(body.result).toMatchObject([{ state: "running", process_id: process.pid, stopped_on: null }]);
  expect(body.result_info).toMatchObject({ total_count: 1 });
  const other = (await server.call("POST", "/accounts", { name: "Customer" })).body.result as { id: string };
  for (const what of ["nodes", "overview"])
    expect((await server.call("GET", `/accounts/${other.id}/edge/${what}`)).status).toBe(403);
});

it("selvedge nodes shows a node of a folder while it runs, when it is killed, and when it is stopped", async () => {
  const dataDir = temporaryFolder();
  const empty = nodesOf("--data-dir", dataDir);
  expect([empty.status, empty.stderr]).toEqual([1, expect.stringContaining("Expected a database at")]);
  const states: string[] = [];
  const ids = new Set<string>();
  const look = (): void => {
    const [node] = JSON.parse(nodesOf("--data-dir", dataDir, "--json").stdout) as {
      id: string;
      state: string;
    }[];
    states.push(node!.state);
    ids.add(node!.id);
  };
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    const server = await serve(["--data-dir", dataDir]);
    look();
    server.process.kill(signal);
    await server.exited;
    look();
  }
  expect(states).toEqual(["running", "lost", "running", "stopped"]);
  expect(ids.size).toBe(1);
  expect(nodesOf("--data-dir", dataDir).stdout).toMatch(
    /^id +name +state .*\n[0-9a-f-]{36} .* stopped +0\.1\.0/,
  );
});

it("two nodes on PostgreSQL see each other, and a killed one becomes lost", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  const url = await postgres.createDatabase();
  const token = "owner-token-for-tests";
  const args = ["--database-url", url, "--blob-url", "postgres", "--api-token", token];
  const start = (): ReturnType<typeof serve> => serve([...args, "--data-dir", temporaryFolder()]);
  const [first, second] = [await start(), await start()];
  const call = callerOf(first.ready.api);
  const path = `/accounts/${first.ready.account_id}/edge/nodes`;
  const stateOf = async (pid: number): Promise<string | undefined> =>
    ((await call("GET", path)).result as { process_id: number; state: string }[]).find(
      ({ process_id }) => process_id === pid,
    )?.state;
  expect([await stateOf(first.process.pid!), await stateOf(second.process.pid!)]).toEqual([
    "running",
    "running",
  ]);
  second.process.kill("SIGKILL");
  await second.exited;
  await expect
    .poll(async () => stateOf(second.process.pid!), { timeout: 60_000, interval: 100 })
    .toBe("lost");
  first.process.kill("SIGTERM");
  expect(await first.exited).toBe(0);
});
