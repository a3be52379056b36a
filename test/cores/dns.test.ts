import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { decode, encode, streamDecode, streamEncode } from "dns-packet";
import { expect, it, vi } from "vitest";
import { startCores, type Cores } from "./cores.ts";

const wait = { timeout: 60_000, interval: 50 };
const everyMs = 20;
const answerMsMax = 30_000;
const question = { type: "A", name: "plain.cores.example" } as const;
const address = "192.0.2.7";

/** Sends a query in each moment until stopped. Resolves with the number of queries, and the ids of those without an answer. */
function queryAllTheTime(port: number): () => Promise<{ sent: number; lost: number[] }> {
  const socket = createSocket("udp4");
  const lost = new Set<number>();
  socket.on("message", (message) => {
    const { id, answers } = decode(message);
    if (answers?.some((each) => each.type === "A" && each.data === address) === true) lost.delete(id!);
  });
  let sent = 0;
  const timer = setInterval(() => {
    lost.add(++sent);
    socket.send(encode({ type: "query", id: sent, questions: [question] }), port, "127.0.0.1");
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await vi.waitFor(() => expect([...lost]).toEqual([]), { timeout: answerMsMax }).catch(() => {});
    socket.close();
    return { sent, lost: [...lost] };
  };
}

/** The same over TCP, with a connection for each query. */
function connectAllTheTime(port: number): () => Promise<Map<string, number>> {
  const state = { isStopping: false };
  const counts = new Map<string, number>();
  const running = (async () => {
    while (!state.isStopping) {
      const answer = await queryOverTcp(port);
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
      await delay(everyMs);
    }
  })();
  return async () => {
    state.isStopping = true;
    await running;
    return counts;
  };
}

async function queryOverTcp(port: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  try {
    socket.write(streamEncode({ type: "query", id: 1, questions: [question] }));
    const [data] = (await once(socket, "data")) as [Buffer];
    const [answer] = streamDecode(data).answers!;
    return answer?.type === "A" ? answer.data : "none";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "failed";
  } finally {
    socket.destroy();
  }
}

async function startWithRecord(): Promise<Cores> {
  const cores = await startCores(1);
  const record = { type: "A", name: "plain", content: address, proxied: false };
  await cores.call("POST", `/zones/${cores.zoneId}/dns_records`, record);
  return cores;
}

it("SIGUSR2 and the death of main lose no DNS query", async () => {
  await using cores = await startWithRecord();
  const port = Number(cores.server.ready.dns.split(":")[1]);
  const [stopUdp, stopTcp] = [queryAllTheTime(port), connectAllTheTime(port)];
  const [old] = cores.pids("main");
  cores.server.process.kill("SIGUSR2");
  await vi.waitFor(() => expect(cores.server.stderr()).toContain("every process was replaced"), wait);
  expect(cores.pids("main").includes(old!)).toBe(false);
  expect([...(await stopTcp()).keys()]).toEqual([address]);

  const [main] = cores.pids("main");
  process.kill(main!, "SIGKILL");
  await vi.waitFor(() => expect(cores.pids("main").includes(main!)).toBe(false), wait);
  await cores.addName("after"); // waits for the next one
  expect(await queryOverTcp(port)).toBe(address);
  const { sent, lost } = await stopUdp();
  expect(sent).toBeGreaterThan(10);
  // A datagram that the killed process had read is lost with it.
  expect(lost.length).toBeLessThanOrEqual(1);
});
