import { setTimeout as delay } from "node:timers/promises";
import type { TestedInvocations } from "../../products/workflows/cells/tested-invocations.ts";
import { LiveInstance } from "../../products/workflows/engine/live-instance.ts";
import type { InstanceRow } from "../../products/workflows/instance.ts";
import type { Instances } from "../../products/workflows/instances.ts";
import { entryName, type History, type JournalEntry } from "../../products/workflows/store/journal.ts";
import { isFinal } from "../../products/workflows/transitions.ts";
import { shown, shownError, timeline } from "../../products/workflows/api/timeline.ts";
import type { Workflow } from "../../products/workflows/workflow.ts";
import { clock } from "../../platform/timers/clock.ts";
import { TestFault } from "../test-fault.ts";

const lookMs = 100;

/** An instance as tests see it. */
export interface ShownInstance {
  id: string;
  status: string;
  output: unknown;
  error: { name: string; message: string } | null;
}

/** Reads instances of workflows, and waits for their statuses, results and ends. */
export class Introspection {
  readonly #instances: Instances;

  constructor(instances: Instances) {
    this.#instances = instances;
  }

  /** Resolves once the instance has the status. Throws a TestFault if it ends with another one, or after `waitMs`. */
  async untilStatus(workflow: Workflow, id: string, wanted: string, waitMs: number): Promise<ShownInstance> {
    return this.#until(workflow, id, `the status "${wanted}"`, waitMs, async (row) => {
      if (row.status === wanted) return shownInstance(row);
      if (!isFinal(row.status)) return undefined;
      const { error } = shownInstance(row);
      const because = error === null ? "" : `: ${error.name}: ${error.message}`;
      throw new TestFault(409, `The instance "${id}" is ${row.status} and will not be ${wanted}${because}`);
    });
  }

  async untilEnd(workflow: Workflow, id: string, waitMs: number): Promise<ShownInstance> {
    return this.#until(workflow, id, "its end", waitMs, async (row) =>
      isFinal(row.status) ? shownInstance(row) : undefined,
    );
  }

  /** Waits for the result of a step. */
  async untilStep(
    workflow: Workflow,
    id: string,
    step: string,
    waitMs: number,
  ): Promise<{ result: unknown } | { error: object }> {
    return this.#until(workflow, id, `a result of the step "${step}"`, waitMs, async (row) => {
      const { entries } = await this.history(row);
      const entry = entries.get(`do:${step}`) ?? entries.get(`waitForEvent:${step}`);
      const { outcome } = entry ?? {};
      if (outcome !== undefined)
        return "error" in outcome ? { error: shownError(outcome.error)! } : { result: shown(outcome.value) };
      if (!isFinal(row.status)) return undefined;
      const steps = [...entries.keys()].map(entryName).join(", ") || "none";
      throw new TestFault(
        409,
        `The instance "${id}" is ${row.status} without a result of the step "${step}". Its steps are ${steps}`,
      );
    });
  }

  async timeline(workflow: Workflow, id: string): Promise<object[]> {
    const row = await this.#get(workflow, id);
    return timeline(row, await this.history(row));
  }

  /** The attempts of a step. */
  async attempts(workflow: Workflow, id: string, step: string): Promise<object[]> {
    const row = await this.#get(workflow, id);
    const { entries } = await this.history(row);
    const entry = entries.get(`do:${step}`);
    if (entry === undefined) throw notReached(id, step, entries);
    return entry.attempts.map(({ number, startedOn, endedOn, error, isInterrupted }) => ({
      attempt: number,
      start: new Date(startedOn).toISOString(),
      end: endedOn === null ? null : new Date(endedOn).toISOString(),
      error: shownError(error),
      interrupted: isInterrupted,
    }));
  }

  /** Replays the code of an ended instance with its journal, and compares the steps and the end. */
  async replay(workflow: Workflow, id: string, invocations: TestedInvocations): Promise<object> {
    const row = await this.#get(workflow, id);
    if (row.status !== "complete" && row.status !== "errored")
      throw new TestFault(409, `Expected an instance that is complete or errored, but it is ${row.status}`);
    const { state } = this.#instances;
    const version = await state.options.version(row.versionRid);
    if (version === undefined) throw new TestFault(409, "The code of the instance was deleted");
    const rows = await state.options.store.journal(row.rid, row.run);
    const live = new LiveInstance(row, rows, []);
    const start = live.startMessage(version.workflowName, state.options.limits, clock.now());
    const value = (key: string): string =>
      rows.findLast((each) => each.key === key && each.value !== null)?.value ?? "tundefined";
    const replayed = await invocations.replay(version.code, start, value);
    if ("added" in replayed)
      return { deterministic: false, added: [entryName(replayed.added)], missed: [], sameEnd: false };
    const { ending } = replayed;
    const missed = "unasked" in ending ? ending.unasked.map(entryName) : [];
    const sameEnd =
      ending.end === "return"
        ? ending.value === row.output
        : ending.end === "throw" && ending.error.message === shownError(row.error)?.message;
    return { deterministic: missed.length === 0 && sameEnd, added: [], missed, sameEnd };
  }

  /** The journal, after pending writes are on disk. */
  async history(row: InstanceRow): Promise<History> {
    await this.#instances.state.writer.drain();
    return this.#instances.history(row);
  }

  async #get(workflow: Workflow, id: string): Promise<InstanceRow> {
    const row = await this.find(workflow, id);
    if (row === undefined)
      throw new TestFault(404, `The workflow ${workflow.name} has no instance with the id "${id}"`);
    return row;
  }

  /** Undefined before the instance is created. */
  async find(workflow: Workflow, id: string): Promise<InstanceRow | undefined> {
    return this.#instances.get(workflow, id).catch(() => undefined);
  }

  async #until<T>(
    workflow: Workflow,
    id: string,
    awaited: string,
    waitMs: number,
    look: (row: InstanceRow) => Promise<T | undefined>,
  ): Promise<T> {
    const endMs = performance.now() + waitMs;
    for (;;) {
      const row = await this.find(workflow, id);
      const changed =
        row === undefined ? delay(lookMs / 10) : this.#instances.state.changes.next(row.rid, lookMs);
      const found = row === undefined ? undefined : await look(row);
      if (found !== undefined) return found;
      if (performance.now() > endMs) throw await this.#late(workflow, id, awaited, waitMs);
      await changed;
    }
  }

  async #late(workflow: Workflow, id: string, awaited: string, waitMs: number): Promise<TestFault> {
    const row = await this.find(workflow, id);
    const waited = `Waited ${waitMs / 1000} seconds for ${awaited} of the instance "${id}"`;
    if (row === undefined) return new TestFault(408, `${waited}, which does not exist`);
    const { entries } = await this.history(row);
    const open = [...entries.values()].findLast(({ outcome }) => outcome === undefined);
    const until = open?.due == null ? "" : ` until ${new Date(open.due).toISOString()}`;
    const at = open === undefined ? "" : `, at ${open.kind} "${entryName(open.key)}"${until}`;
    return new TestFault(408, `${waited}, which is ${row.status}${at}`);
  }
}

const shownInstance = ({ id, status, output, error }: InstanceRow): ShownInstance => ({
  id,
  status,
  output: shown(output),
  error: shownError(error),
});

const notReached = (id: string, step: string, entries: ReadonlyMap<string, JournalEntry>): TestFault =>
  new TestFault(
    404,
    `The instance "${id}" has not reached the step "${step}". Its steps are ${[...entries.keys()].map(entryName).join(", ") || "none"}`,
  );
