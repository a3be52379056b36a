import type { Change } from "./batch.ts";
import { RefusedError, type Core } from "./core.ts";
import type { InstanceRow, NewInstance, TriggerSource } from "./instance.ts";
import { entryKind, entryName } from "./journal.ts";
import type { LiveInstance } from "./live-instance.ts";
import type { SegmentCalls } from "./segment-calls.ts";
import type { Standbys } from "./standbys.ts";
import type { Input } from "./transitions.ts";

/** An instance that is to be made; its id and its parameters have been checked. */
export interface CreateInput {
  accountId: string;
  workflowRid: number;
  versionRid: number;
  id: string;
  params: string;
  trigger: TriggerSource;
  successRetentionMs: number;
  errorRetentionMs: number;
}

/** The step from which a restart begins again. */
export interface RestartFrom {
  name: string;
  count: number;
  kind: "do" | "sleep" | "waitForEvent";
}

export type Control = "pause" | "resume" | "terminate";

/** What is done to instances from outside. Each resolves when it is durable. */
export class Operations {
  readonly #core: Core;
  readonly #calls: SegmentCalls;
  readonly #standbys: Standbys;
  #eventNumber = 0;

  constructor(core: Core, calls: SegmentCalls, standbys: Standbys) {
    this.#core = core;
    this.#calls = calls;
    this.#standbys = standbys;
  }

  /** Makes instances, all in one transaction; null stands for one whose id is taken. */
  async create(shard: number, inputs: readonly CreateInput[]): Promise<(InstanceRow | null)[]> {
    const { now } = this.#core;
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
    const changes = instances.map((instance): Change => ({ kind: "create", instance }));
    const [first] = instances;
    const { isIdle } = this.#core.writer;
    const written = this.#core.writer.append(shard, changes, true);
    if (isIdle && first !== undefined) this.#standbys.add(first.versionRid);
    const rids = await written;
    return instances.map((instance, index) => {
      const rid = rids[index];
      if (rid === null || rid === undefined || this.#core.isStopped) return null;
      const row = { ...instance, rid };
      this.#core.requeue(this.#core.adopt(row));
      return row;
    });
  }

  control(rid: number, input: Control): Promise<InstanceRow> {
    return this.#move(rid, input);
  }

  async #move(rid: number, input: Input): Promise<InstanceRow> {
    return this.#core.with(rid, async (instance) => {
      this.#refuseDuringFault();
      const changes = this.#core.move(instance, input) ?? [];
      if (changes.length > 0) await this.#core.commit(instance, changes);
      return instance.row;
    });
  }

  /** Begins again, with the latest version; with `from`, the steps that began before it keep their results. */
  async restart(rid: number, from?: RestartFrom): Promise<InstanceRow> {
    return this.#core.with(rid, async (instance) => {
      this.#refuseDuringFault();
      const { options } = this.#core;
      const version = await options.latestVersion(instance.row.workflowRid);
      await this.#core.writer.drain();
      const journal = from === undefined ? [] : await options.store.journal(rid, instance.row.run);
      const kept = from === undefined ? new Set<string>() : keysBefore(instance, from);
      instance.row.versionRid = version.rid;
      const { promise, resolve } = Promise.withResolvers<void>();
      instance.restarting = promise;
      const changes = this.#core.move(instance, "restart") ?? [];
      const copies = journal
        .filter((row) => kept.has(row.key))
        .map(({ rid: _rid, run: _run, ...row }) => instance.record(row));
      const all = [...changes, ...copies, instance.update(this.#core.now)];
      await this.#core.commit(instance, all).finally(resolve);
      if (instance.restarting === promise) instance.restarting = undefined;
      return instance.row;
    });
  }

  async sendEvent(rid: number, type: string, payload: string): Promise<void> {
    return this.#core.with(rid, async (instance) => {
      this.#refuseDuringFault();
      this.#core.move(instance, "event");
      const event = { type, payload, at: this.#core.now };
      const delivered = this.#calls.deliver(instance, event);
      if (delivered !== undefined) {
        await this.#core.commit(instance, delivered.changes);
        return delivered.done();
      }
      const open =
        instance.segment === undefined && instance.row.status === "waiting"
          ? instance.history.openWaits(type).find((entry) => (entry.due ?? 0) > event.at)
          : undefined;
      if (open !== undefined) {
        const taken = instance.record({ kind: "event", key: open.key, at: event.at, value: payload });
        return this.#core.commit(instance, [taken, ...(this.#core.move(instance, "wake") ?? [])]);
      }
      const buffered = { rid, number: this.#nextEventNumber(), ...event };
      instance.events.push(buffered);
      return this.#core.commit(instance, [{ kind: "event", row: buffered }]);
    });
  }

  /** Ends an instance without a trace. */
  async remove(rid: number): Promise<void> {
    return this.#core.with(rid, async (instance) => {
      this.#refuseDuringFault();
      this.#core.forget(instance);
      await this.#core.commit(instance, [{ kind: "remove", rid }]);
    });
  }

  /** Something of the instance is due: its running segment is told, or it goes on from its journal. */
  async due(rid: number): Promise<void> {
    await this.#core.with(rid, async (instance) => {
      if (instance.segment !== undefined) return this.#calls.due(instance);
      const { status, wakeOn } = instance.row;
      if (status !== "waiting" || wakeOn === null) return;
      if (wakeOn > this.#core.now) return this.#core.timers.arm(wakeOn, rid);
      this.#core.move(instance, "wake");
      this.#core.saveLater(instance);
    });
  }

  /** While the database takes no writes nothing is begun that could not be kept. */
  #refuseDuringFault(): void {
    this.#core.writer.refuseDuringFault();
  }

  #nextEventNumber(): number {
    this.#eventNumber = Math.max(this.#eventNumber + 1, this.#core.now * 1000);
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
