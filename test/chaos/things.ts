import type { Answered, Call } from "../helpers/writes.ts";
import type { Random } from "../name-server/random.ts";
import type { ChaosNode } from "./platform.ts";
import { Refused } from "./kinds.ts";
import type { Tally } from "./tally.ts";
import { History, type Kind, type Seen, type Thing } from "./thing.ts";

/** A node that says that it is ready shows nothing that is older, in milliseconds. */
export const promisedMs = 10_000;
/** So long a node may refuse a write to a thing because it does not know it yet. */
const newMs = 30_000;

export interface Known {
  kind: Kind;
  thing: Thing;
  history: History;
  madeAt: number;
  isBusy: boolean;
}

/** All things, and what reads of them have shown. */
export class Things {
  readonly all: Known[] = [];
  readonly wrong: string[] = [];
  readonly reads = { reads: 0, unanswered: 0, stale: [] as string[], lagMsMax: 0 };
  readonly #kinds: readonly Kind[];
  readonly #tally: Tally;
  readonly #perKind: number;
  readonly #making = new Map<Kind, number>();
  #made = 0;

  constructor(kinds: readonly Kind[], tally: Tally, perKind: number) {
    this.#kinds = kinds;
    this.#tally = tally;
    this.#perKind = perKind;
  }

  /** Makes a thing where some are missing; else the next version of one. */
  async writeOne(node: ChaosNode, call: Call, random: Random): Promise<void> {
    const missing = this.#kinds.filter((kind) => this.#alive(kind) < this.#perKind);
    if (missing.length > 0 && random.chance(70)) return this.#make(random.pick(missing), node, call);
    const free = this.all.filter(({ thing, history, isBusy }) => thing.write && !history.isOver && !isBusy);
    if (free.length === 0) return;
    const known = random.pick(free);
    const { kind, thing, history, madeAt } = known;
    known.isBusy = true;
    const version = history.begin();
    const isNew = performance.now() - madeAt < newMs;
    const what = `${kind.name} at ${node.name}`;
    const { fate } = await this.#tally.write(what, () => thing.write!(version, call), isNew);
    if (fate === "acknowledged") history.acknowledge();
    else if (fate === "refused") history.refuse();
    else history.giveUp();
    known.isBusy = false;
  }

  #alive(kind: Kind): number {
    const made = this.all.filter((known) => known.kind === kind && !known.history.isOver).length;
    return made + (this.#making.get(kind) ?? 0);
  }

  async #make(kind: Kind, node: ChaosNode, call: Call): Promise<void> {
    const n = ++this.#made;
    this.#making.set(kind, (this.#making.get(kind) ?? 0) + 1);
    let thing: Thing | undefined;
    await this.#tally.write(`new ${kind.name} at ${node.name}`, async () => {
      try {
        thing = await kind.make(n, call);
        return { status: 200 } as Answered;
      } catch (error) {
        if (error instanceof Refused) return error.answer;
        throw error;
      }
    });
    this.#making.set(kind, this.#making.get(kind)! - 1);
    if (thing === undefined) return;
    const history = new History();
    history.begin();
    history.acknowledge();
    this.all.push({ kind, thing, history, madeAt: performance.now(), isBusy: false });
  }

  /** Reads one thing at a node in one way, and judges it. */
  async readOne(node: ChaosNode, call: Call, random: Random): Promise<void> {
    if (this.all.length === 0) return;
    // Mostly things that are being written.
    const known = random.pick(random.chance(70) ? this.all.slice(-100) : this.all);
    const { kind, thing, history } = known;
    const channel = random.pick(thing.channels);
    const before = await node.readiness();
    const at = performance.now();
    const seen: Seen = await channel.read(node, call).catch(() => undefined);
    const isReady = before === "ready" && (await node.readiness()) === "ready";
    this.reads.reads++;
    if (seen === undefined) return void this.reads.unanswered++;
    const newest = isReady ? history.newestAt(at - promisedMs) : 0;
    const verdict = history.judge(seen, newest);
    const seconds = (at / 1000).toFixed(1);
    const what = `at ${seconds} s: ${kind.name} ${thing.name}, ${channel.name} of ${node.name}: ${seen.text}`;
    if (verdict === "wrong") this.wrong.push(`${what}; acknowledged: v${history.acknowledged}`);
    else if (isReady) {
      this.reads.lagMsMax = Math.max(this.reads.lagMsMax, history.lagMs(seen, at));
      if (verdict === "stale") this.reads.stale.push(`${what}; v${newest} was acknowledged before`);
    }
  }
}
