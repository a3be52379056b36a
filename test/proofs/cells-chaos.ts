import { setTimeout as delay } from "node:timers/promises";
import { readFileSync } from "node:fs";
import { request as httpRequest, Agent } from "node:http";
import { benchToken, startSelvedge } from "../../bench/lib/child.ts";
import { createZone, listenLocally } from "../snippets/example-platform.ts";

/**
 * Many zones with snippets on one platform: a steady load on innocent ones, while others loop, hoard memory or fail, and
 * the proof kills cells. Every innocent request must be answered correctly. By default it runs for two minutes:
 * `node test/proofs/cells-chaos.ts [seconds]`.
 */
export interface ChaosReport {
  innocent: number;
  /** Innocent requests that were not answered as they should be. */
  failures: string[];
  p50Ms: number;
  p99Ms: number;
  worstMs: number;
  /** Answers to the guilty, by code. */
  guilty: Record<string, number>;
  kills: number;
}

export interface Platform {
  token: string;
  api: string;
  edge: string;
  pid: number;
}

const innocents = 20;

const guilty: Record<string, { code: string; expected: readonly string[] }> = {
  spin: { code: "for (;;);", expected: ["1203"] },
  objects: { code: "const all = []; for (;;) all.push({ all: [all.length] });", expected: ["1203", "1204"] },
  buffers: {
    code: "const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1));",
    expected: ["1203", "1204"],
  },
  recurse: { code: "const again = () => again() + 1; again();", expected: ["1206"] },
  throws: { code: 'throw new Error("no");', expected: ["1206"] },
  later: {
    code: "await new Promise((resolve) => setTimeout(resolve, 5)); for (;;);",
    expected: ["1203"],
  },
};

export interface ChaosOptions {
  seconds: number;
  /** Innocent requests, over all of their zones. */
  perSecond: number;
  killEveryMs: number;
}

export async function chaos(
  platform: Platform,
  { seconds, perSecond, killEveryMs }: ChaosOptions,
): Promise<ChaosReport> {
  const origin = await listenLocally((request, response) => void response.end(`origin ${request.url}`));
  const names = Array.from({ length: innocents }, (_, i) => `innocent-${i}.example`);
  for (const [i, name] of names.entries())
    await createZone(
      platform.api,
      name,
      origin.port,
      [{ name: "innocent", code: innocent(i) }],
      platform.token,
    );
  for (const [name, { code }] of Object.entries(guilty))
    await createZone(
      platform.api,
      `${name}.example`,
      origin.port,
      [{ name, code: `export default { async fetch() { ${code} } };` }],
      platform.token,
    );

  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const latencies: number[] = [];
  const failures: string[] = [];
  const codes: Record<string, number> = {};
  const inFlight = new Set<Promise<void>>();
  const track = (work: Promise<void>): void => {
    inFlight.add(work);
    void work.finally(() => inFlight.delete(work));
  };
  let sent = 0;
  const end = performance.now() + seconds * 1000;
  const start = performance.now();
  const visitInnocent = async (i: number): Promise<void> => {
    const which = i % innocents;
    const at = performance.now();
    const { status, body } = await requestEdge(agent, platform.edge, names[which]!, `/${i}`);
    latencies.push(performance.now() - at);
    const expected = `innocent ${which}: origin /${i}`;
    if (status !== 200 || body !== expected) failures.push(`${status} ${body.slice(0, 200)}`);
  };
  const guiltyLoop = (async () => {
    for (let i = 0; performance.now() < end; i++) {
      const [name, { expected }] = Object.entries(guilty)[i % Object.keys(guilty).length]!;
      const { body } = await requestEdge(agent, platform.edge, `${name}.example`, "/");
      const code = /"code":(\d+)/.exec(body)?.[1] ?? "none";
      codes[`${name} ${code}`] = (codes[`${name} ${code}`] ?? 0) + 1;
      if (!expected.includes(code)) failures.push(`${name}: ${body.slice(0, 200)}`);
    }
  })();
  let kills = 0;
  const killLoop = (async () => {
    for (;;) {
      await delay(killEveryMs);
      if (performance.now() >= end) return;
      const cells = cellsOf(platform.pid);
      const pid = cells[Math.floor(Math.random() * cells.length)];
      if (pid === undefined) continue;
      try {
        process.kill(pid, "SIGKILL");
        kills++;
      } catch {
        // it ended by itself meanwhile
      }
    }
  })();
  while (performance.now() < end) {
    const due = Math.floor(((performance.now() - start) * perSecond) / 1000);
    while (sent < due) track(visitInnocent(sent++));
    await delay(5);
  }
  await Promise.all([guiltyLoop, killLoop, ...inFlight]);
  agent.destroy();
  origin.close();
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    innocent: sent,
    failures,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    worstMs: at(1),
    guilty: codes,
    kills,
  };
}

const innocent = (i: number): string => `export default { async fetch(request) {
  const response = await fetch(request);
  return new Response("innocent ${i}: " + (await response.text()), response);
} };`;

function requestEdge(
  agent: Agent,
  edge: string,
  host: string,
  path: string,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const failed = (error: Error): void => resolve({ status: 0, body: error.message });
    const outgoing = httpRequest(
      `${edge}${path}`,
      { agent, headers: { host, accept: "application/json" } },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => (body += part));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        response.on("error", failed);
      },
    );
    outgoing.on("error", failed);
    outgoing.end();
  });
}

/** The workerd processes under a process. */
function cellsOf(pid: number): number[] {
  let children: number[];
  let name: string;
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .split(" ")
      .filter(Boolean)
      .map(Number);
    name = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return []; // ended meanwhile
  }
  return [...(name === "workerd" ? [pid] : []), ...children.flatMap(cellsOf)];
}

if (import.meta.main) {
  const seconds = Number(process.argv[2] ?? 120);
  const platform = await startSelvedge(["--ephemeral"]);
  const { failures, ...figures } = await chaos(
    { ...platform.ready, token: benchToken },
    { seconds, perSecond: 200, killEveryMs: 1000 },
  );
  process.stdout.write(`${JSON.stringify({ ...figures, failures: failures.length }, null, 2)}\n`);
  for (const failure of failures.slice(0, 10)) process.stdout.write(`failure: ${failure}\n`);
  await platform.stop();
  process.exitCode = failures.length === 0 ? 0 : 1;
}
