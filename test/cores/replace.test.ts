import { once } from "node:events";
import { expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startCores, visitAllTheTime } from "./cores.ts";

const wait = { timeout: 60_000, interval: 50 };
const rounds = 2;

it("SIGUSR2 replaces every process and loses no connection", async () => {
  await using cores = await startCores(2);
  const { edge } = cores.server.ready;
  await cores.addName("www");
  const stop = visitAllTheTime(edge, "www.cores.example", 4);
  for (let round = 1; round <= rounds; round++) {
    const before = new Set([...cores.pids("edge"), ...cores.pids("main")]);
    const webSockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = new WebSocket(edge.replace("http", "ws"), { headers: { host: "www.cores.example" } });
        await once(socket, "open");
        return socket;
      }),
    );
    const closed = webSockets.map(async (socket) => (await once(socket, "close"))[0] as number);
    cores.server.process.kill("SIGUSR2");
    expect(new Set(await Promise.all(closed))).toEqual(new Set([1001]));
    const replaced = (): number => cores.server.stderr().split("every process was replaced").length - 1;
    await vi.waitFor(() => expect(replaced()).toBe(round), wait);
    await vi.waitFor(() => {
      const now = [...cores.pids("edge"), ...cores.pids("main")];
      expect(now.length).toBe(3);
      expect(now.filter((pid) => before.has(pid))).toEqual([]);
    }, wait);
  }
  expect([...(await stop()).keys()]).toEqual(["200"]);
});
