import type { InstanceChange } from "../store/batch.ts";
import { RefusedError, type EngineState } from "./engine-state.ts";
import type { InstanceRow, NewInstance, TriggerSource } from "../instance.ts";
import { entryKind, entryName } from "../store/journal.ts";
import type { LiveInstance } from "./live-instance.ts";
import type { InvocationCalls } from "./invocation-calls.ts";
import type { StandbyInvocations } from "./standby-invocations.ts";
import type { Input } from "../transitions.ts";

/** A new instance, with validated id and parameters. */
export interface CreateInput {
  accountId: string;
  workflowRid: number;
  versionRid: number;
  id: string;
  params: string;
  trigger: TriggerSource;
  creatorTrace: string | null;
  successRetentionMs: number;
  errorRetentionMs: number;
}

/** The step from which a restart begins. */
export interface RestartFrom {
  name: string;
  count: number;
  kind: "do" | "sleep" | "waitForEvent";
}

export type InstanceControl = "pause" | "resume" | "terminate";

/** Operations on instances from outside. Each resolves once its effect is durable. */
export class Operations {
  readonly #state: EngineState;
  readonly #calls: InvocationCalls;
  readonly #standbys: StandbyInvocations;
  #eventNumber = 0;

  constructor(state: EngineState, calls: InvocationCalls, standbys: StandbyInvocations) {
    this.#state = state;
    this.#calls = calls;
    this.#standbys = standbys;
  }

  /** Creates instances in one transaction; null for each whose id is taken. */
  async create(shard: number, inputs: readonly CreateInput[]): Promise<(InstanceRow | null)[]> {
    const { now } = this.#state;
    const instances = inputs.map((input): NewInstance => ({
      ...input,
      shard,
      status: "queued",
      run: 1,
      createdOn: now,
      modifiedOn: now,
      startedOn: null,
      endedOn: null,
      pausedOn: null,
      wakeOn: null,
      expiresOn: null,
      crashes: 0,
      output: null,
      error: null,
    }));
    const changes = instances.map((instance): InstanceChange => ({ kind: "create", instance }));
    const [first] = instances;
    const { isIdle } = this.#state.writer;
    const written = this.#state.writer.append(shard, changes, true);
    if (isIdle && first !== undefined) this.#standbys.add(first.versionRid);
    const rids = await written;
    return instances.map((instance, index) => {
      const rid = rids[index];
      if (rid === null || rid === undefined || this.#state.isStopped) return null;
      const row = { ...instance, rid };
      this.#state.requeue(this.#state.adopt(row));
      return row;
    });
  }

  control(rid: number, input: InstanceControl): Promise<InstanceRow> {
    return this.#move(rid, input);
  }

  async #move(rid: number, input: Input): Promise<InstanceRow> {
    return this.#state.with(rid, async (instance) => {
      this.#refuseDuringFault();
      const changes = this.#state.move(instance, input) ?? [];
      if (changes.length > 0) await this.#state.commit(instance, changes);
      return instance.row;
    });
  }

  /** Restarts with the latest version; with `from`, earlier steps keep their results. */
  async restart(rid: number, from?: RestartFrom): Promise<InstanceRow> {
    return this.#state.with(rid, async (instance) => {
      this.#refuseDuringFault();
      const { options } = this.#state;
      const version = await options.latestVersion(instance.row.workflowRid);
      await this.#state.writer.drain();
      const journal = from === undefined ? [] : await options.store.journal(rid, instance.row.run);
      const kept = from === undefined ? new Set<string>() : keysBefore(instance, from);
      instance.row.versionRid = version.rid;
      const { promise, resolve } = Promise.withResolvers<void>();
      instance.restarting = promise;
      const changes = this.#state.move(instance, "restart") ?? [];
      const copies = journal
        .filter((row) => kept.has(row.key))
        .map(({ rid: _rid, run: _run, ...row }) => instance.record(row));
      const all = [...changes, ...copies, instance.update(this.#state.now)];
      await this.#state.commit(instance, all).finally(resolve);
      if (instance.restarting === promise) instance.restarting = undefined;
      return instance.row;
    });
  }

  async sendEvent(rid: number, type: string, payload: string): Promise<void> {
    return this.#state.with(rid, async (instance) => {
      this.#refuseDuringFault();
      this.#state.move(instance, "event");
      const event = { type, payload, at: this.#state.now };
      const delivered = this.#calls.deliver(instance, event);
      if (delivered !== undefined) {
        await this.#state.commit(instance, delivered.changes);
        return delivered.done();
      }
      const open =
        instance.invocation === undefined && instance.row.status === "waiting"
          ? instance.history.openWaits(type).find((entry) => (entry.due ?? 0) > event.at)
          : undefined;
      if (open !== undefined) {
        const taken = instance.record({ kind: "event", key: open.key, at: event.at, value: payload });
        return this.#state.commit(instance, [taken, ...(this.#state.move(instance, "wake") ?? [])]);
      }
      const buffered = { rid, number: this.#nextEventNumber(instance), ...event };
      instance.events.push(buffered);
      return this.#state.commit(instance, [{ kind: "event", row: buffered }]);
    });
  }

  /** Removes an instance with all its rows. */
  async remove(rid: number): Promise<void> {
    return this.#state.with(rid, async (instance) => {
      this.#refuseDuringFault();
      await this.#state.remove(instance.row.shard, [rid]);
    });
  }

  /**
   * Called when a timer of the instance is due: notifies its running invocation, or continues from its
   * journal.
   */
  async due(rid: number): Promise<void> {
    await this.#state.with(rid, async (instance) => {
      if (instance.invocation !== undefined) return this.#calls.due(instance);
      const { status, wakeOn } = instance.row;
      if (status !== "waiting" || wakeOn === null) return;
      if (wakeOn > this.#state.now) return this.#state.timers.arm(wakeOn, rid);
      this.#state.move(instance, "wake");
      this.#state.saveLater(instance);
    });
  }

  /** Refuses new work while the database accepts no writes. */
  #refuseDuringFault(): void {
    this.#state.writer.refuseDuringFault();
  }

  /**
   * The next number above those of the instance's events, even if another process with a faster clock
   * assigned them.
   */
  #nextEventNumber({ events }: LiveInstance): number {
    const above = events.reduce((most, { number }) => Math.max(most, number + 1), this.#eventNumber + 1);
    this.#eventNumber = Math.max(above, this.#state.now * 1000);
    return this.#eventNumber;
  }
}

function keysBefore(instance: LiveInstance, { name, count, kind }: RestartFrom): Set<string> {
  const target = `${name}-${count}`;
  const keys = [...instance.history.entries.keys()];
  const at = keys.findIndex((key) => entryKind(key) === kind && entryName(key) === target);
  if (at < 0) throw new RefusedError("cannotRestart", `Step "${name}" not found in execution history`);
  return new Set(keys.slice(0, at));
}
