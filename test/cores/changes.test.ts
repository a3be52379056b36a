import { expect, it, vi } from "vitest";
import { ask, startCores } from "./cores.ts";

/** The status of a name without a record. */
const unknownName = 404;

it("every edge process serves a change when the API has answered", async () => {
  await using cores = await startCores(4);
  const { edge } = cores.server.ready;
  expect(cores.pids("edge").length).toBe(4);
  for (let change = 0; change < 10; change++) {
    const host = `n${change}.cores.example`;
    const answers = async (): Promise<Set<number | string>> =>
      new Set(await Promise.all(Array.from({ length: 50 }, () => ask(edge, host))));
    await cores.addName(`n${change}`);
    expect(await answers()).toEqual(new Set([200]));
    await cores.removeName(`n${change}`);
    expect(await answers()).toEqual(new Set([unknownName]));
  }
});

it("an edge process that is stopped delays no change for long, and serves nothing stale when it goes on", async () => {
  await using cores = await startCores(2);
  const { edge } = cores.server.ready;
  const [stopped] = cores.pids("edge");
  process.kill(stopped!, "SIGSTOP");
  await cores.addName("new");
  await vi.waitFor(() => expect(cores.server.stderr()).toContain("an edge process does not answer"));
  // Connections that wait in the queue are accepted by the one that runs.
  expect(await ask(edge, "new.cores.example")).toBe(200);
  process.kill(stopped!, "SIGCONT");
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask(edge, "new.cores.example")));
  expect(new Set(answers)).toEqual(new Set([200]));
  await vi.waitFor(() => expect(cores.pids("edge").includes(stopped!)).toBe(false), { timeout: 30_000 });
  await vi.waitFor(() => expect(cores.pids("edge").length).toBe(2), { timeout: 30_000 });
});
