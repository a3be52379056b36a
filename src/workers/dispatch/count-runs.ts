import type { ProcessNotes } from "../../platform/processes/notes.ts";
import type { OwnProcess } from "../../platform/processes/own-process.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { CustomerRuns, DispatchTally } from "../../sandbox/dispatches/tally.ts";
import { scriptOfOwner } from "../scripts/runtime-script.ts";
import type { DispatchUsage } from "./usage.ts";

const topic = "runs of customers";
/** Cells keep their counts until they are asked, and take them along when they end. */
const collectEveryMs = 1000;

/** Collects the counts of this process. Edge processes tell theirs to main, which answers the API. */
export class CustomerRunCounts {
  readonly #tallies: readonly DispatchTally[];
  readonly #usage: DispatchUsage;
  readonly #notes: ProcessNotes;
  readonly #isEdge: boolean;

  constructor(
    tallies: readonly DispatchTally[],
    usage: DispatchUsage,
    notes: ProcessNotes,
    { role }: Pick<OwnProcess, "role">,
  ) {
    this.#tallies = tallies;
    this.#usage = usage;
    this.#notes = notes;
    this.#isEdge = role === "edge";
    notes.on<[string, CustomerRuns][]>(topic, (counts) => this.#add(counts));
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

  /** Adds the counts since the last call. */
  async collect(): Promise<void> {
    const counts = (await Promise.all(this.#tallies.map(async (tally) => tally.take()))).flat();
    if (counts.length === 0) return;
    if (this.#isEdge) await this.#notes.tell(topic, counts);
    else this.#add(counts);
  }
}
