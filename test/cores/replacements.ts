import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { visitAllTheTime, type Cores } from "./cores.ts";

export interface ReplacedReport {
  /** Answers to clients with a new connection for each request: by status, or by the code of the failure. */
  answers: Map<string, number>;
  /** How WebSockets were closed, by code. */
  closed: Map<number, number>;
  /** Rounds after which a process of before was there, or one was missing. */
  unreplaced: number;
}

export interface Replacing {
  rounds: number;
  clients: number;
  webSockets: number;
  /** Called before each round, for example to install another version of the program. */
  before?: (round: number) => void;
}

const roundMsMax = 120_000;
const everyMs = 50;

/** Sends SIGUSR2 again and again to a node whose zone has the name `www`, under load. */
export async function replaceUnderLoad(
  cores: Cores,
  { rounds, clients, webSockets, before = () => {} }: Replacing,
): Promise<ReplacedReport> {
  const { edge } = cores.server.ready;
  const stop = visitAllTheTime(edge, "www.cores.example", clients);
  const closed = new Map<number, number>();
  let unreplaced = 0;
  for (let round = 1; round <= rounds; round++) {
    before(round);
    const old = new Set(processesOf(cores));
    const open = await Promise.all(Array.from({ length: webSockets }, async () => openWebSocket(edge)));
    const closing = open.map(async (socket) => (await once(socket, "close"))[0] as number);
    cores.server.process.kill("SIGUSR2");
    for (const code of await Promise.all(closing)) closed.set(code, (closed.get(code) ?? 0) + 1);
    const isOver = await becomes(() => {
      const now = processesOf(cores);
      const replacements = cores.server.stderr().split("every process was replaced").length - 1;
      return replacements === round && now.length === old.size && !now.some((pid) => old.has(pid));
    });
    if (!isOver) unreplaced += 1;
  }
  return { answers: await stop(), closed, unreplaced };
}

/** The ids of main and the edge processes. */
export const processesOf = (cores: Cores): number[] => [...cores.pids("edge"), ...cores.pids("main")];

async function openWebSocket(edge: string): Promise<WebSocket> {
  const socket = new WebSocket(edge.replace("http", "ws"), { headers: { host: "www.cores.example" } });
  await once(socket, "open");
  return socket;
}

async function becomes(is: () => boolean): Promise<boolean> {
  const endMs = performance.now() + roundMsMax;
  while (!is()) {
    if (performance.now() > endMs) return false;
    await delay(everyMs);
  }
  return true;
}
