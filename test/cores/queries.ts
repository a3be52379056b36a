import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { decode, encode, streamDecode, streamEncode } from "dns-packet";
import { vi, expect } from "vitest";
import type { Cores } from "./cores.ts";

const everyMs = 20;
const answerMsMax = 30_000;
const question = { type: "A", name: "plain.cores.example" } as const;
/** The answer to each query. */
export const plainAddress = "192.0.2.7";

/** Sends a query in each moment until stopped. Resolves with the number of queries, and the ids of those without an answer. */
export function queryAllTheTime(port: number): () => Promise<{ sent: number; lost: number[] }> {
  const socket = createSocket("udp4");
  const lost = new Set<number>();
  socket.on("message", (message) => {
    const { id, answers } = decode(message);
    if (answers?.some((each) => each.type === "A" && each.data === plainAddress) === true) lost.delete(id!);
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
export function connectAllTheTime(port: number): () => Promise<Map<string, number>> {
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

export async function queryOverTcp(port: number): Promise<string> {
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

/** Adds the record that the queries ask for. */
export async function addPlainRecord(cores: Cores): Promise<void> {
  const record = { type: "A", name: "plain", content: plainAddress, proxied: false };
  await cores.call("POST", `/zones/${cores.zoneId}/dns_records`, record);
}
