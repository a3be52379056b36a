import type { MessageBus } from "../../platform/processes/message-bus.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { CustomerRuns, DispatchTally } from "../../sandbox/dispatches/tally.ts";
import { accountOfOwner, scriptOfOwner } from "../scripts/runtime-script.ts";
import type { DispatchUsage } from "./usage.ts";

const topic = "runs of customers";
/** Cells keep their counts until they are asked, and take them along when they end. */
const collectEveryMs = 1000;

/** Collects the counts of this process. Edge processes send theirs to main, which answers the API. */
export class CustomerRunCounts {
  readonly #tallies: readonly DispatchTally[];
  readonly #usage: DispatchUsage;
  readonly #bus: MessageBus;
  readonly #isEdge: boolean;

  constructor(
    tallies: readonly DispatchTally[],
    usage: DispatchUsage,
    bus: MessageBus,
    { role }: Pick<OwnProcess, "role">,
  ) {
    this.#tallies = tallies;
    this.#usage = usage;
    this.#bus = bus;
    this.#isEdge = role === "edge";
    bus.subscribe<[string, CustomerRuns][]>(topic, (counts) => this.#add(counts));
  }

  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#timer = setInterval(() => unawaited(this.collect()), collectEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #add(counts: readonly [owner: string, CustomerRuns][]): void {
    for (const [owner, count] of counts) this.#usage.add(scriptOfOwner(owner), count);
  }

  /** Number of cells of this process that lack counts of an account's dispatchers, because a run keeps them busy. */
  late(accountId: string): number {
    const isOfAccount = (owner: string): boolean => accountOfOwner(owner) === accountId;
    return this.#tallies.reduce((sum, tally) => sum + tally.late(isOfAccount), 0);
  }

  /** Adds the counts since the last call. Waits a second at most. */
  async collect(): Promise<void> {
    const counts = (await Promise.all(this.#tallies.map(async (tally) => tally.take()))).flat();
    if (counts.length === 0) return;
    if (this.#isEdge) await this.#bus.publish(topic, counts);
    else this.#add(counts);
  }
}
