import { setTimeout as sleep } from "node:timers/promises";
import type { Calls } from "../runtime/platform.ts";
import { ask, keepAsking, type Tally } from "./load-clients.ts";

/** The stages on which a greedy account does its worst. */
export interface Stage {
  edge: string;
  greedy: Calls;
  /** More accounts that are in league with it. */
  accomplices: readonly Calls[];
  /** A server outside that never answers under `/never`. */
  outside: string;
}

export interface LoadCase {
  /** Of requests, so that the short form needs not as many. */
  scale: (share: number) => number;
  deploy(stage: Stage): Promise<void>;
  run(stage: Stage, tally: Tally, signal: AbortSignal, scale: number): Promise<void>;
  /** Whether an innocent customer of the greedy account's dispatcher is asked too. */
  hasCustomer?: boolean;
}

const handler = (body: string): string => `export default { async fetch(request, env, ctx) { ${body} } };`;
const portOf = (edge: string): string => new URL(edge).port;
const hostUrl = (edge: string, calls: Calls, script: string): string =>
  `http://${calls.hostOf(script)}:${portOf(edge)}/`;
const whole =
  (count: number) =>
  (share: number): number =>
    Math.max(1, Math.round(count * share));

/** Keeps so many visitors at a script of the greedy account. */
const visitors =
  (script: string, path = "/"): LoadCase["run"] =>
  async ({ edge, greedy }, tally, signal, count) =>
    keepAsking(count, { edge, host: greedy.hostOf(script), path }, tally, signal);

const sleeping = "await scheduler.wait(20_000); return new Response('slept');";
const serviceBinding = { type: "service", name: "NEXT", service: "sleeper" };

/** Each is what one customer, or a few in league, can do to take the platform from all others. */
export const cases: Record<string, LoadCase> = {
  "visitors of a sleeping script": {
    scale: whole(1100),
    deploy: async ({ greedy }) => greedy.deploy("sleeper", handler(sleeping)),
    run: visitors("sleeper"),
  },
  "requests with 990 sleeping service calls each": {
    scale: whole(4),
    async deploy({ greedy }) {
      await greedy.deploy("sleeper", handler(sleeping));
      const code = handler(
        "await Promise.all(Array.from({ length: 990 }, () => env.NEXT.fetch(request).then((r) => r.text()).catch(() => {}))); return new Response('all');",
      );
      await greedy.deploy("caller", { code, bindings: [serviceBinding] });
    },
    run: visitors("caller"),
  },
  "requests with 990 sleeping method calls each": {
    scale: whole(4),
    async deploy({ greedy }) {
      const service = `import { WorkerEntrypoint } from "cloudflare:workers";
        export default class extends WorkerEntrypoint { async sleep() { await scheduler.wait(20_000); } }`;
      await greedy.deploy("sleeper", service);
      const code = handler(
        "await Promise.all(Array.from({ length: 990 }, () => env.NEXT.sleep().catch(() => {}))); return new Response('all');",
      );
      await greedy.deploy("caller", { code, bindings: [serviceBinding] });
    },
    run: visitors("caller"),
  },
  "a sleeping customer of a dispatcher": {
    scale: whole(1100),
    deploy: async ({ greedy }) => greedy.deployCustomer("customers", "sleeper", handler(sleeping)),
    run: visitors("dispatcher", "/sleeper"),
    hasCustomer: true,
  },
  "hosts that fetch each other": {
    scale: whole(40),
    async deploy({ edge, greedy }) {
      await greedy.deploy("ping", handler(`return fetch("${hostUrl(edge, greedy, "pong")}");`));
      await greedy.deploy("pong", handler(`return fetch("${hostUrl(edge, greedy, "ping")}");`));
    },
    run: visitors("ping"),
  },
  "fan-outs of 50 over hosts, on every level": {
    scale: whole(4),
    deploy: async ({ edge, greedy }) =>
      greedy.deploy(
        "fan",
        handler(
          `await Promise.all(Array.from({ length: 50 }, () => fetch("${hostUrl(edge, greedy, "fan")}").then((r) => r.text()).catch(() => {}))); return new Response('all');`,
        ),
      ),
    run: visitors("fan"),
  },
  "fan-outs of 50 over bindings, on every level": {
    scale: whole(4),
    async deploy({ greedy }) {
      const code = handler(
        "await Promise.all(Array.from({ length: 50 }, () => env.NEXT.fetch(request).then((r) => r.text()).catch(() => {}))); return new Response('all');",
      );
      await greedy.deploy("fan", handler("return new Response('first');"));
      await greedy.deploy("fan", { code, bindings: [{ type: "service", name: "NEXT", service: "fan" }] });
    },
    run: visitors("fan"),
  },
  "many large scripts in turn": {
    scale: whole(60),
    async deploy({ greedy }) {
      for (let i = 0; i < 60; i++) {
        const code = {
          "index.js": `import data from "./data.bin"; const held = new Uint8Array(data).map((byte) => byte + 1);
            export default { async fetch() { return new Response(String(held.length)); } };`,
          "data.bin": new Uint8Array(4_000_000).fill(i),
        };
        await greedy.deploy(`large-${i}`, { code });
      }
    },
    async run({ edge, greedy }, tally, signal, count) {
      const client = async (first: number): Promise<void> => {
        for (let i = first; !signal.aborted; i += 4)
          tally.add(await ask({ edge, host: greedy.hostOf(`large-${i % count}`), signal }));
      };
      await Promise.all([0, 1, 2, 3].map(client));
    },
  },
  "WebSockets that stay open": {
    scale: whole(1500),
    deploy: async ({ greedy }) =>
      greedy.deploy(
        "sockets",
        handler(
          "const { 0: theirs, 1: ours } = new WebSocketPair(); ours.accept(); ours.send('hello'); return new Response(null, { status: 101, webSocket: theirs });",
        ),
      ),
    async run({ greedy }, tally, signal, count) {
      const socket = async (): Promise<void> => {
        const connection = greedy.connect("sockets");
        const opened = await new Promise<number>((resolve) => {
          connection.once("message", () => resolve(101));
          connection.once("unexpected-response", (_request, response) => resolve(response.statusCode ?? 0));
          connection.once("error", () => resolve(0));
          signal.addEventListener("abort", () => resolve(0));
        });
        if (!signal.aborted) tally.add({ status: opened, code: "", body: "error" });
        connection.on("error", () => {});
        if (!signal.aborted)
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        connection.terminate();
      };
      await Promise.all(Array.from({ length: count }, socket));
    },
  },
  "fetches from a server that never answers": {
    scale: whole(8),
    deploy: async ({ greedy, outside }) =>
      greedy.deploy(
        "waiter",
        handler(
          `await Promise.all(Array.from({ length: 900 }, () => fetch("${outside}/never").catch(() => {}))); return new Response('all');`,
        ),
      ),
    run: visitors("waiter"),
  },
  "answers at once that leave something sleeping": {
    scale: whole(20),
    deploy: async ({ greedy }) =>
      greedy.deploy("later", handler("ctx.waitUntil(scheduler.wait(60_000)); return new Response('now');")),
    run: visitors("later"),
  },
  "scripts that compute without a pause": {
    scale: whole(30),
    deploy: async ({ greedy }) =>
      greedy.deploy(
        "computing",
        handler("const end = Date.now() + 100; while (Date.now() < end); return new Response('computed');"),
      ),
    run: visitors("computing"),
  },
  "a culprited script that sleeps": {
    scale: whole(40),
    deploy: async ({ greedy }) =>
      greedy.deploy("culprit", handler(`if (request.url.endsWith("/spin")) for (;;); ${sleeping}`)),
    async run(stage, tally, signal, count) {
      const { edge, greedy } = stage;
      const spinner = async (): Promise<void> => {
        while (!signal.aborted) {
          tally.add(await ask({ edge, host: greedy.hostOf("culprit"), path: "/spin", signal }));
          await sleep(1000, undefined, { signal }).catch(() => {});
        }
      };
      await Promise.all([spinner(), visitors("culprit")(stage, tally, signal, count)]);
    },
  },
  "twelve accounts in league": {
    scale: whole(1500),
    async deploy({ accomplices }) {
      for (const each of accomplices) await each.deploy("sleeper", handler(sleeping));
    },
    async run({ edge, accomplices }, tally, signal, count) {
      const each = Math.ceil(count / accomplices.length);
      await Promise.all(
        accomplices.map(async (calls) =>
          keepAsking(each, { edge, host: calls.hostOf("sleeper") }, tally, signal),
        ),
      );
    },
  },
};
