import { setTimeout as sleep } from "node:timers/promises";
import { cellPids } from "./cell-processes.ts";
import { startHosting, startOutside, type Hosting, type EdgeResponse } from "./platform.ts";

export interface ResponseCounts {
  asked: number;
  /** Number of times that each answer came. */
  answers: Record<string, number>;
}
export interface ChaosOutcome {
  seconds: number;
  cellsKilled: number;
  /** Idempotent requests to customers whose scripts do no harm. */
  innocent: ResponseCounts & { failed: number; ms: { p50: number; p99: number; max: number } };
  culprits: Record<string, ResponseCounts>;
}

const dispatcher = `export default {
  async fetch(request, env) {
    const [, name] = new URL(request.url).pathname.split("/");
    try { return await env.NS.get(name, {}, { limits: { cpuMs: 50, subRequests: 10 } }).fetch(request); }
    catch (error) { return new Response(error.message, { status: 500 }); }
  },
};`;

const innocents: Record<string, string> = {
  hello: `return new Response("well");`,
  state: `globalThis.count = (globalThis.count ?? 0) + 1; return new Response("well");`,
  store: `await env.STORE.put("key", "well"); return new Response(await env.STORE.get("key"));`,
  fetching: `return new Response((await (await fetch("OUTSIDE/")).text()));`,
  streaming: `return new Response(new Blob(["we", "ll"]).stream());`,
  working: `let sum = 0; for (let i = 0; i < 1e6; i++) sum += i; return new Response(sum > 0 ? "well" : "");`,
};
const culprits: Record<string, string> = {
  spin: `for (;;) {}`,
  microtasks: `const loop = () => Promise.resolve().then(loop); await loop();`,
  hog: `const all = []; for (;;) all.push({ text: String(Math.random()) });`,
  buffers: `const all = []; for (;;) { all.push(new Uint8Array(4e6).fill(1)); await scheduler.wait(1); }`,
  recursion: `const { exports } = await import("cloudflare:workers"); return exports.Entry.fetch(request);`,
  abort: `const { abortIsolate } = await import("cloudflare:workers"); abortIsolate("now");`,
  late: `ctx.waitUntil((async () => { await scheduler.wait(50); for (;;) {} })()); return new Response("well");`,
};

/**
 * Calls customers' scripts that spin, take all memory or crash, and kills cells, for some seconds. Returns
 * the effect on innocent customers.
 */
export async function chaos(seconds: number, say: (line: string) => void = () => {}): Promise<ChaosOutcome> {
  const hosting = await startHosting({ privateNetworks: "all" });
  const outside = await startOutside((_request, response) => response.end("well"));
  const until = performance.now() + seconds * 1000;
  const isOver = (): boolean => performance.now() > until;
  const innocent: ChaosOutcome["innocent"] = {
    asked: 0,
    failed: 0,
    answers: {},
    ms: { p50: 0, p99: 0, max: 0 },
  };
  const counts: Record<string, ResponseCounts> = Object.fromEntries(
    Object.keys(culprits).map((name) => [name, { asked: 0, answers: {} }]),
  );
  const tookMs: number[] = [];
  let cellsKilled = 0;
  try {
    await deployAll(hosting, outside.url);
    for (const name of Object.keys(innocents)) await hosting.ask("dispatcher", `/${name}`);
    const names = Object.keys(innocents);
    const client = async (first: number): Promise<void> => {
      for (let i = first; !isOver(); i++) {
        const started = performance.now();
        const answer = await hosting.ask("dispatcher", `/${names[i % names.length]}`).catch(failed);
        tookMs.push(performance.now() - started);
        count(innocent, answer);
        if (answer.status !== 200 || answer.body !== "well") {
          innocent.failed++;
          say(`${names[i % names.length]} got ${answer.status} ${answer.body.slice(0, 200)}`);
        }
      }
    };
    const wrong = async (name: string): Promise<void> => {
      while (!isOver()) {
        count(counts[name]!, await hosting.ask("dispatcher", `/${name}`).catch(failed));
        await sleep(200 + Math.random() * 800);
      }
    };
    const killer = async (): Promise<void> => {
      for (;;) {
        await sleep(500 + Math.random() * 1500);
        if (isOver()) return;
        const pids = cellPids(process.pid);
        const pid = pids[Math.floor(Math.random() * pids.length)];
        if (pid === undefined) continue;
        try {
          process.kill(pid, "SIGKILL");
          cellsKilled++;
        } catch {
          // it has ended already
        }
      }
    };
    await Promise.all([...[0, 1, 2, 3].map(client), ...Object.keys(culprits).map(wrong), killer()]);
  } finally {
    await outside.close();
    await hosting.close(0);
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number => Math.round(tookMs[Math.floor(tookMs.length * share)] ?? 0);
  innocent.ms = { p50: at(0.5), p99: at(0.99), max: Math.round(tookMs.at(-1) ?? 0) };
  return { seconds, cellsKilled, innocent, culprits: counts };
}

async function deployAll(hosting: Hosting, outside: string): Promise<void> {
  await hosting.createNamespace("chaos");
  await hosting.deploy("dispatcher", {
    code: dispatcher,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "chaos" }],
  });
  const store = await hosting.createKv("store");
  for (const [name, body] of Object.entries({ ...innocents, ...culprits }))
    await hosting.deployCustomer("chaos", name, {
      code: `export default { async fetch(request, env, ctx) { ${body.replace("OUTSIDE", outside)} } };`,
      bindings: [{ type: "kv_namespace", name: "STORE", namespace_id: store }],
    });
}

const failed = (error: unknown): EdgeResponse => ({
  status: 0,
  statusText: "",
  headers: {},
  body: (error as Error).message,
});

function count(counts: ResponseCounts, { status, body }: EdgeResponse): void {
  const answer =
    `${status} ${status === 200 ? "" : (/<title>(.*?)<\/title>/.exec(body)?.[1] ?? body.slice(0, 80))}`.trim();
  counts.asked++;
  counts.answers[answer] = (counts.answers[answer] ?? 0) + 1;
}
