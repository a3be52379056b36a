import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { residentMegabytes } from "../../bench/lib/measure.ts";
import { Random } from "../name-server/random.ts";
import { startListeners, type Listener } from "./listeners/listeners.ts";
import type { Target } from "./target.ts";

export interface ListenersReport {
  messages: number;
  /** Messages and results, by listener. */
  table: Record<string, Row>;
  /** Responses with status 500 and their requests, logged errors, and failed visits after an attack. */
  failures: string[];
  uncaught: number;
  /** Growth of the process's memory, from the end of the first round to its peak. */
  grewMebibytes: number;
  /** Sockets that the process still has after all connections have closed. */
  socketsLeft: number;
}

interface Row {
  messages: number;
  connections: number;
  kibibytes: number;
  /** Connections with any response, and connections that the platform closed. */
  answered: number;
  ended: number;
  /** Ordinary visits after each round. */
  visits: number;
  [status: string]: number;
}

/** Sockets of a process whose peer has closed the connection. */
function leftSocketsOf(pid: number): number {
  const fields = (file: string): string[][] =>
    readFileSync(`/proc/net/${file}`, "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const inUse = new Set(fields("unix").map((line) => line[6]));
  for (const line of [...fields("udp"), ...fields("udp6")]) inUse.add(line[9]);
  const [established, listening] = ["01", "0A"];
  for (const line of [...fields("tcp"), ...fields("tcp6")])
    if (line[3] === established || line[3] === listening) inUse.add(line[9]);
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((name) => {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${name}`))?.[1];
      return inode !== undefined && !inUse.has(inode);
    } catch {
      return false; // it was closed concurrently
    }
  }).length;
}

/**
 * Sends `count` messages to the listeners of a platform, evenly and in rounds. After each round, every
 * listener must answer an ordinary visit. The same seed sends the same messages.
 */
export async function fuzzListeners(
  target: Target,
  count: number,
  seed: number,
  rounds: number,
): Promise<ListenersReport> {
  const listeners = await startListeners(target);
  const names = Object.keys(listeners.all);
  const report: ListenersReport = {
    messages: 0,
    table: {},
    failures: [],
    uncaught: 0,
    grewMebibytes: 0,
    socketsLeft: 0,
  };
  const { pid } = target.started;
  const each = Math.ceil(count / rounds / names.length);
  try {
    await visitAll(listeners.all, report);
    let mebibytesBefore = 0;
    for (let round = 0; round < rounds; round++) {
      for (const [index, name] of names.entries()) {
        const first = ((seed * rounds + round) * names.length + index) * 100_000;
        await attack(name, listeners.all[name]!, each, first, report);
      }
      await visitAll(listeners.all, report);
      if (round === 0) mebibytesBefore = residentMegabytes(pid);
      report.grewMebibytes = Math.max(report.grewMebibytes, residentMegabytes(pid) - mebibytesBefore);
    }
    report.socketsLeft = await settled(() => leftSocketsOf(pid));
    report.failures.push(...target.started.logged.map((line) => `logged: ${line.slice(0, 1000)}`));
    report.uncaught = await target.uncaught();
  } finally {
    await listeners.close();
  }
  return report;
}

async function attack(
  name: string,
  listener: Listener,
  messagesMax: number,
  firstSeed: number,
  report: ListenersReport,
): Promise<void> {
  const row = (report.table[name] ??= {
    messages: 0,
    connections: 0,
    kibibytes: 0,
    answered: 0,
    ended: 0,
    visits: 0,
  });
  const end = row.messages + messagesMax;
  let seed = firstSeed;
  const work = async (): Promise<void> => {
    while (row.messages < end) {
      const own = seed++;
      const random = new Random(own);
      const messages = listener.messages(random);
      row.messages += messages.length;
      report.messages += messages.length;
      const { bytes, answer, isClosed } = await listener.send(random, messages);
      row.connections++;
      row.kibibytes += bytes / 1024;
      if (answer !== "") row.answered++;
      if (isClosed) row.ended++;
      for (const [, status] of answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        row[`${status![0]}xx`] = (row[`${status![0]}xx`] ?? 0) + 1;
        if (status !== "500") continue;
        const shown = JSON.stringify(Buffer.concat(messages).toString("latin1").slice(0, 600));
        report.failures.push(`${name}, seed ${own}: status 500, of ${shown}`);
      }
    }
  };
  await Promise.all(Array.from({ length: listener.atOnce }, work));
}

async function visitAll(all: Record<string, Listener>, report: ListenersReport): Promise<void> {
  for (const [name, listener] of Object.entries(all))
    try {
      await listener.visit();
      const row = report.table[name];
      if (row !== undefined) row.visits++;
    } catch (error) {
      report.failures.push(`${name}, an ordinary visit: ${String(error)}`);
    }
}

/** Waits for the value to drop to 0. Returns the last value after a timeout. */
async function settled(read: () => number): Promise<number> {
  for (let tries = 0; tries < 300 && read() > 0; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  return Math.max(0, read());
}
