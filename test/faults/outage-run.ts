import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { elapsedUntil, startScene, type Outage, type Scene } from "./outages.ts";

/** The effect of an outage of PostgreSQL on two nodes. */
export interface OutageReport {
  /** From its begin until `/readyz` of both nodes was 503. */
  unreadyMs: number;
  /** From its end until `/readyz` of both nodes was 200. */
  readyMs: number;
  /** From its end until both nodes had acknowledged a new write. */
  writingMs: number;
  /** The longest wait for the answer to a write. */
  answerMsMax: number;
  acknowledged: number;
  refused: number;
  /** Answers to writes that are neither 200 nor 503 with `retry-after`. */
  wrong: string[];
  /** Visits during the outage that were not answered as before it. */
  visitsFailed: number;
  visits: number;
  /** Acknowledged writes that PostgreSQL or one of the nodes does not have. */
  lost: string[];
}

const waitMsMax = 60_000;
const host = "served.example";

/** Writes and visits of two nodes, before, during and after an outage of `awayMs`. */
export async function runOutage(
  outage: Outage,
  { awayMs, ...settings }: { awayMs: number; databaseTimeoutSeconds?: number; staleAfterSeconds?: number },
): Promise<OutageReport> {
  const scene = await startScene(outage);
  const nodes: TestServer[] = [];
  try {
    const { databaseUrl } = scene;
    for (let n = 0; n < 2; n++)
      nodes.push(
        await startTestServer({ databaseUrl, logLevel: process.env["LOG"] ?? "fatal", ...settings }),
      );
    return await new Run(scene, nodes).of(outage, awayMs);
  } finally {
    await Promise.all(nodes.map((node) => node.close(1000)));
    await scene.stop();
  }
}

class Run {
  readonly #scene: Scene;
  readonly #nodes: readonly TestServer[];
  readonly #acknowledged: string[][] = [[], []];
  readonly #wrong: string[] = [];
  #refused = 0;
  #answerMsMax = 0;
  #visits = 0;
  #visitsFailed = 0;
  #isOver = false;

  constructor(scene: Scene, nodes: readonly TestServer[]) {
    this.#scene = scene;
    this.#nodes = nodes;
  }

  async of(outage: Outage, awayMs: number): Promise<OutageReport> {
    await this.#serve();
    const working = this.#nodes.flatMap((node, n) => [this.#write(node, n), this.#request(node)]);
    await this.#writing(0);
    const beginMs = performance.now();
    await outage.begin(this.#scene);
    const [unreadyMs] = await Promise.all([this.#readyIs(false, beginMs), delay(awayMs)]);
    await outage.end(this.#scene);
    const endMs = performance.now();
    const [readyMs, writingMs] = await Promise.all([this.#readyIs(true, endMs), this.#writing(endMs)]);
    this.#isOver = true;
    await Promise.all(working);
    return {
      ...{ unreadyMs, readyMs, writingMs, answerMsMax: this.#answerMsMax },
      acknowledged: this.#acknowledged.flat().length,
      refused: this.#refused,
      wrong: this.#wrong,
      visits: this.#visits,
      visitsFailed: this.#visitsFailed,
      lost: await this.#lost(),
    };
  }

  /** Makes a host that both nodes serve. Nothing listens at its origin. */
  async #serve(): Promise<void> {
    const [first, second] = this.#nodes as [TestServer, TestServer];
    const id = await first.newZone(host);
    const record = { type: "A", name: "@", content: "127.0.0.1", proxied: true };
    await first.call("POST", `/zones/${id}/dns_records`, record);
    const rule = { action: "route", expression: "true", action_parameters: { origin: { port: 1 } } };
    const path = `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`;
    await first.call("PUT", path, { rules: [rule] });
    const isServed = async (): Promise<boolean> =>
      (await requestEdge(second.ready.edge, host)).status === 521;
    await elapsedUntil(isServed, performance.now(), waitMsMax);
  }

  async #write(node: TestServer, n: number): Promise<void> {
    for (let serial = 0; !this.#isOver; serial++) {
      const name = `n${n}-${serial}.example`;
      const startMs = performance.now();
      const { status, headers } = await node.call("POST", "/zones", { name });
      this.#answerMsMax = Math.max(this.#answerMsMax, performance.now() - startMs);
      if (status === 200) this.#acknowledged[n]!.push(name);
      else if (status === 503 && headers.get("retry-after") !== null) this.#refused++;
      else this.#wrong.push(`${name}: ${status}`);
      await delay(20);
    }
  }

  async #request({ ready: { edge } }: TestServer): Promise<void> {
    while (!this.#isOver) {
      const { status } = await requestEdge(edge, host);
      this.#visits++;
      if (status !== 521) this.#visitsFailed++;
      await delay(50);
    }
  }

  async #readyIs(isReady: boolean, startMs: number): Promise<number> {
    const each = this.#nodes.map(async ({ ready: { api } }) =>
      elapsedUntil(
        async () => ((await fetch(new URL("/readyz", api))).status === 200) === isReady,
        startMs,
        waitMsMax,
      ),
    );
    return Math.max(...(await Promise.all(each)));
  }

  /** Until both nodes have acknowledged one more write. */
  async #writing(startMs: number): Promise<number> {
    const before = this.#acknowledged.map(({ length }) => length);
    const isWriting = (): boolean => this.#acknowledged.every(({ length }, n) => length > before[n]! + 1);
    return elapsedUntil(isWriting, startMs, performance.now() - startMs + waitMsMax);
  }

  async #lost(): Promise<string[]> {
    const direct = new URL(this.#scene.databaseUrl);
    direct.port = String(this.#scene.port);
    const client = new Client(direct.href);
    await client.connect();
    const { rows: zones } = await client.query<{ name: string }>("select name from zones");
    const { rows: log } = await client.query<{ held: number; highest: number; head: number }>(
      "select count(distinct changes.seq)::int as held, max(changes.seq)::int as highest, max(change_head.seq)::int as head from changes, change_head",
    );
    await client.end();
    const { held, highest, head } = log[0]!;
    assert.deepEqual([held, highest], [head, head], "the log has holes");
    const stored = new Set(zones.map(({ name }) => name));
    const lost = this.#acknowledged.flat().filter((name) => !stored.has(name));
    for (const node of this.#nodes) {
      await elapsedUntil(
        () => node.services.zones.list().length === stored.size,
        performance.now(),
        waitMsMax,
      );
      const known = new Set(node.services.zones.list().map(({ name }) => name));
      lost.push(...[...stored].filter((name) => !known.has(name)));
    }
    return lost;
  }
}
