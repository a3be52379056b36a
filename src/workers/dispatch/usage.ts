import type { CustomerRuns } from "../../sandbox/dispatches/tally.ts";
import { addHistogram } from "../../sandbox/dispatches/cpu-histogram.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The runs of a customer's script in a time. */
export interface CustomerUsage extends Pick<CustomerRuns, "requests" | "faults" | "cpuMs" | "cpuRuns"> {
  lastFault: { at: number; message: string } | undefined;
}

const newUsage = (): CustomerUsage => ({
  requests: 0,
  faults: 0,
  cpuMs: 0,
  cpuRuns: [],
  lastFault: undefined,
});

/** The usage of a script without runs. */
export const noUsage: Readonly<CustomerUsage> = newUsage();

const stepMs = 10 * 60_000;
/** The current step and six whole ones: an hour at least. */
const stepsMax = 7;
/** Customers counted in one step; further ones are not counted. */
const customersMax = 50_000;

interface UsageStep {
  since: number;
  /** By script id. */
  counts: Map<string, CustomerUsage>;
}

/** Counts of the last hour by customer, in memory. Only customers with runs take room. */
export class DispatchUsage {
  #steps: UsageStep[] = [];
  readonly #startedAt = clock.now();

  add(scriptId: string, { requests, faults, cpuMs, cpuRuns, lastFault }: CustomerRuns): void {
    const now = clock.now();
    const { counts } = this.#step(now);
    let count = counts.get(scriptId);
    if (count === undefined) {
      if (counts.size >= customersMax) return;
      counts.set(scriptId, (count = newUsage()));
    }
    count.requests += requests;
    count.faults += faults;
    count.cpuMs += cpuMs;
    addHistogram(count.cpuRuns, cpuRuns);
    if (lastFault !== undefined) count.lastFault = { at: now, message: lastFault };
  }

  #step(now: number): UsageStep {
    this.#expire(now);
    const last = this.#steps.at(-1);
    if (last !== undefined && now >= last.since && now - last.since < stepMs) return last;
    const step: UsageStep = { since: now - (now % stepMs), counts: new Map() };
    this.#steps.push(step);
    return step;
  }

  #expire(now: number): void {
    const oldest = now - stepsMax * stepMs;
    this.#steps = this.#steps.filter(({ since }) => since > oldest && since <= now);
  }

  /** The time from which on runs are counted. */
  get since(): number {
    const now = clock.now();
    return Math.max(this.#startedAt, now - (now % stepMs) - (stepsMax - 1) * stepMs);
  }

  /** The sums of a script; undefined if it had no run. */
  of(scriptId: string): CustomerUsage | undefined {
    this.#expire(clock.now());
    let sum: CustomerUsage | undefined;
    for (const { counts } of this.#steps) {
      const count = counts.get(scriptId);
      if (count === undefined) continue;
      sum ??= newUsage();
      sum.requests += count.requests;
      sum.faults += count.faults;
      sum.cpuMs += count.cpuMs;
      addHistogram(sum.cpuRuns, count.cpuRuns);
      sum.lastFault = count.lastFault ?? sum.lastFault;
    }
    return sum;
  }

  /** The scripts that had runs. */
  get scriptIds(): ReadonlySet<string> {
    this.#expire(clock.now());
    return new Set(this.#steps.flatMap(({ counts }) => [...counts.keys()]));
  }

  /** For a script that is deleted. */
  forget(scriptId: string): void {
    for (const { counts } of this.#steps) counts.delete(scriptId);
  }

  reset(): void {
    this.#steps = [];
  }
}
