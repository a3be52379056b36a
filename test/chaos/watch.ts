import { setTimeout as delay } from "node:timers/promises";
import type { ChaosNode } from "./platform.ts";

/** Asks the nodes all the time whether they are ready. */
export class Watch {
  readonly #nodes: readonly ChaosNode[];
  readonly #unready = new Map<ChaosNode, { since: number; causes: Set<string> }>();
  readonly #spells: { name: string; ms: number; causes: Set<string> }[] = [];
  #isOver = false;

  constructor(nodes: readonly ChaosNode[]) {
    this.#nodes = nodes;
    for (const node of nodes) void this.#follow(node);
  }

  async #follow(node: ChaosNode): Promise<void> {
    while (!this.#isOver) {
      const readiness = await node.readiness();
      const spell = this.#unready.get(node);
      if (readiness !== "ready") {
        if (spell === undefined)
          this.#unready.set(node, { since: performance.now(), causes: new Set([readiness]) });
        else spell.causes.add(readiness);
      } else if (spell !== undefined) {
        this.#unready.delete(node);
        this.#spells.push({ name: node.name, ms: performance.now() - spell.since, causes: spell.causes });
      }
      await delay(200);
    }
  }

  /** Resolves when all nodes are ready; throws after a time. */
  async bothReady(msMax: number): Promise<void> {
    for (const end = performance.now() + msMax; ;) {
      const all = await Promise.all(this.#nodes.map((node) => node.readiness()));
      if (all.every((each) => each === "ready")) return;
      if (performance.now() > end) throw new Error(`the nodes do not become ready: ${all.join(", ")}`);
      await delay(100);
    }
  }

  /** The longest time from the end of disturbances until all nodes were ready, in seconds. */
  secondsToReady = 0;
  async measure(): Promise<void> {
    const since = performance.now();
    await this.bothReady(90_000);
    this.secondsToReady = Math.max(this.secondsToReady, (performance.now() - since) / 1000);
  }

  /** The longest spell in which a node was not ready. */
  longest(): string {
    const [worst] = this.#spells.toSorted((a, b) => b.ms - a.ms);
    if (worst === undefined) return "none";
    return `${(worst.ms / 1000).toFixed(1)} s, node ${worst.name} (${[...worst.causes].join(", ")})`;
  }

  stop(): void {
    this.#isOver = true;
  }
}
