import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { ask, startCores, visitAllTheTime } from "./cores.ts";

const wait = { timeout: 30_000, interval: 50 };

it("an edge process that is killed takes only its requests in flight with it", async () => {
  await using cores = await startCores(2);
  await cores.addName("www");
  const clients = 6;
  const kills = 4;
  const stop = visitAllTheTime(cores.server.ready.edge, "www.cores.example", clients);
  for (let kill = 0; kill < kills; kill++) {
    await vi.waitFor(() => expect(cores.pids("edge").length).toBe(2), wait);
    process.kill(cores.pids("edge")[0]!, "SIGKILL");
    await vi.waitFor(
      () => expect(cores.server.stderr().split("is started again").length - 1).toBe(kill + 1),
      wait,
    );
  }
  const counts = await stop();
  const { 200: whole = 0, ...failed } = Object.fromEntries(counts) as Record<string, number>;
  expect(whole).toBeGreaterThan(clients);
  const failures = Object.values(failed).reduce((sum, count) => sum + count, 0);
  expect(failures).toBeLessThanOrEqual(clients * kills);
  expect(Object.keys(failed).filter((answer) => !["ECONNRESET", "cut", "EPIPE"].includes(answer))).toEqual(
    [],
  );
});

it("a pause of the whole node ends none of its processes", async () => {
  await using cores = await startCores(1);
  await cores.addName("www");
  const supervisor = cores.server.ready.pid;
  const children = [...cores.pids("main"), ...cores.pids("edge")];
  for (const pid of [...children, supervisor]) process.kill(pid, "SIGSTOP");
  await delay(6000); // longer than main may be silent
  process.kill(supervisor, "SIGCONT");
  await delay(700); // it looks at main, which has said nothing yet
  for (const pid of children) process.kill(pid, "SIGCONT");
  await cores.addName("after");
  expect(await ask(cores.server.ready.edge, "after.cores.example")).toBe(200);
  expect([...cores.pids("main"), ...cores.pids("edge")]).toEqual(children);
});

it("edge processes serve while there is no main, and calls of the API wait for the next one", async () => {
  await using cores = await startCores(2);
  const { edge } = cores.server.ready;
  await cores.addName("www");
  await cores.calls.deploy("hello", `export default { fetch: () => new Response("hello") }`);
  const stop = visitAllTheTime(edge, "www.cores.example", 4);
  const [main] = cores.pids("main");
  process.kill(main!, "SIGKILL");
  await vi.waitFor(() => expect(cores.pids("main").includes(main!)).toBe(false), wait);
  expect(await ask(edge, "www.cores.example")).toBe(200);
  await cores.addName("after"); // waits in the queue of the socket
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(edge, "after.cores.example")));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect((await cores.calls.ask("hello")).body).toBe("hello");
  expect([...(await stop()).keys()]).toEqual(["200"]);
});
