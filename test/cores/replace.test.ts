import { expect, it, vi } from "vitest";
import { ask, startCores, visitAllTheTime, type Cores } from "./cores.ts";
import { Program, versionOf } from "./program.ts";
import { processesOf } from "./replacements.ts";

const wait = { timeout: 60_000, interval: 50 };
const testMsMax = 180_000;
const host = "www.cores.example";

const versionsOf = (cores: Cores): string[] => processesOf(cores).map(versionOf);
const times = (cores: Cores, text: string): number => cores.server.stderr().split(text).length - 1;
const failed = "a new edge process did not start";

it(
  "SIGUSR2 starts another version of the program, and one that does not start, or never becomes ready, harms nothing",
  { timeout: testMsMax },
  async () => {
    using program = new Program();
    program.install("first");
    const limits = ["--process-start-seconds", "10", "--database-wait-seconds", "0"];
    await using cores = await startCores(2, limits, program.path);
    await cores.addName("www");
    const stop = visitAllTheTime(cores.server.ready.edge, host, 4);

    program.install("broken", "edgesThrow");
    const before = processesOf(cores);
    for (let attempt = 1; attempt <= 6; attempt++) {
      cores.server.process.kill("SIGUSR2");
      await vi.waitFor(() => expect(times(cores, failed)).toBe(attempt), wait);
    }
    expect(processesOf(cores)).toEqual(before);

    program.install("second");
    cores.server.process.kill("SIGUSR2");
    await vi.waitFor(() => expect(versionsOf(cores)).toEqual(["second", "second", "second"]), wait);
    await vi.waitFor(() => expect(times(cores, "every process was replaced")).toBe(1), wait);
    await cores.addName("after");
    expect([...(await stop()).keys()]).toEqual(["200"]);
    expect(await ask(cores.server.ready.edge, "after.cores.example")).toBe(200);

    program.install("hung", "edgesHang");
    const later = processesOf(cores);
    cores.server.process.kill("SIGUSR2");
    await vi.waitFor(() => expect(times(cores, failed)).toBe(7), wait);
    expect(processesOf(cores)).toEqual(later);

    const [stalled] = cores.pids("edge");
    process.kill(stalled!, "SIGSTOP");
    await vi.waitFor(() => expect(times(cores, failed)).toBe(8), wait);
    program.install("third");
    process.kill(stalled!, "SIGCONT"); // it is replaced nevertheless
    await vi.waitFor(() => expect(versionsOf(cores).toSorted()).toEqual(["second", "second", "third"]), wait);
    cores.server.process.kill("SIGUSR2");
    await vi.waitFor(() => expect(versionsOf(cores)).toEqual(["third", "third", "third"]), wait);
    expect(await ask(cores.server.ready.edge, host)).toBe(200);
  },
);
