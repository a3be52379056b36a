import type { CellListener } from "./cells.ts";
import type { Change } from "./batch.ts";
import type { Core } from "./core.ts";
import type { LiveInstance, PendingCall } from "./live-instance.ts";
import { FencedError, RefusedWriteError } from "./writer.ts";
import { entryName, type Entry } from "./journal.ts";
import { notUnderstood, readCall, readNote } from "./said.ts";
import { encodedBytes } from "./worker/codec.ts";
import {
  holdAnswer,
  type CallMessage,
  type Ending,
  type ErrorMessage,
  type WaitAnswer,
} from "./worker/messages.ts";

/** Cells may die so often under an instance that gets no further, before it is given up. */
const crashesMax = 3;
const dueMsMax = 366 * 86_400_000;
const stateBytesMax = 1024 ** 3;

/** What segments ask of the engine. Whatever comes from a segment that was fenced is dropped here. */
export class SegmentCalls implements CellListener {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  call(segment: number, call: number, text: string): void {
    const instance = this.#core.segments.get(segment);
    if (instance === undefined) return;
    const message = readCall(text);
    if (message === undefined) return this.fail(instance, notUnderstood);
    this.#answer(instance, segment, call, message).catch((error: unknown) => {
      if (error instanceof FencedError) return; // the instance is another node's
      if (error instanceof RefusedWriteError) return; // it has ended
      this.#core.options.onFault(error, "a step's call failed");
    });
  }

  note(segment: number, text: string): void {
    const instance = this.#core.segments.get(segment);
    if (instance === undefined) return;
    const message = readNote(text);
    if (message === undefined) return this.fail(instance, notUnderstood);
    const [, key, attempt, elapsedMs, config] = message;
    if (instance.history.get(key)?.outcome !== undefined) return;
    const { now } = this.#core;
    const row = instance.record({ kind: "start", key, attempt, at: now, startedOn: now - elapsedMs, config });
    this.#core.commitUnawaited(instance, [row]);
  }

  ended(segment: number, ending: Ending): void {
    const instance = this.#core.segments.get(segment);
    if (instance === undefined) return;
    const warnings = "unasked" in ending ? this.#divergence(instance, ending) : [];
    let moved: Change[] | undefined;
    switch (ending.end) {
      case "return":
        if (encodedBytes(ending.value) > this.#core.options.limits.valueBytesMax) {
          return this.fail(instance, {
            name: "WorkflowInternalError",
            message: "The workflow's output is too large. Maximum allowed size is 1MiB.",
          });
        }
        instance.row.output = ending.value;
        moved = this.#core.move(instance, "return");
        break;
      case "throw":
        instance.row.error = JSON.stringify({ ...ending.error, rollback: ending.rollback });
        moved = this.#core.move(instance, "throw");
        break;
      case "held":
        // A resume may have come too late to be heard: then the instance goes on at once.
        moved = this.#core.move(instance, instance.row.status === "waitingForPause" ? "suspend" : "lost");
        break;
      case "suspend":
        moved = this.#suspend(instance, ending.waiting);
        break;
    }
    this.#core.commitUnawaited(instance, [...warnings, ...(moved ?? [])]);
  }

  lost(segment: number, isSuspect: boolean): void {
    const instance = this.#core.segments.get(segment);
    if (instance === undefined) return;
    if (isSuspect && ++instance.row.crashes >= crashesMax) {
      const message = `The process that ran this instance ended ${crashesMax} times before the instance got any further: it runs out of memory or time, or ends its process.`;
      return this.fail(instance, { name: "WorkflowInternalError", message });
    }
    this.#core.commitUnawaited(instance, this.#core.move(instance, "lost") ?? []);
  }

  /** Answers what is due of a running instance. */
  due(instance: LiveInstance): void {
    const { segment } = instance;
    if (segment === undefined) return;
    const { now } = this.#core;
    for (const pending of segment.pending.values()) {
      if (pending.due > now) continue;
      segment.pending.delete(pending.call);
      if (pending.eventType === null) this.#core.answer(segment.number, pending.call, "");
      else this.#timeout(instance, segment.number, pending);
    }
  }

  /** Gives an event to a wait of a running instance, if there is one. */
  deliver(
    instance: LiveInstance,
    event: { type: string; payload: string; at: number },
  ): { changes: Change[]; done: () => void } | undefined {
    const { segment } = instance;
    for (const pending of segment?.pending.values() ?? []) {
      if (pending.eventType !== event.type || pending.due <= event.at) continue;
      if (instance.history.get(pending.key)?.outcome !== undefined) continue; // a wait that was said twice
      segment!.pending.delete(pending.call);
      const changes = [
        instance.record({ kind: "event", key: pending.key, at: event.at, value: event.payload }),
      ];
      const answer: WaitAnswer = ["event", event.payload, event.type, event.at];
      return {
        changes,
        done: () => this.#core.answer(segment!.number, pending.call, JSON.stringify(answer)),
      };
    }
    return undefined;
  }

  fail(instance: LiveInstance, error: ErrorMessage): void {
    instance.row.error = JSON.stringify(error);
    this.#core.commitUnawaited(instance, this.#core.move(instance, "throw") ?? []);
  }

  async #answer(instance: LiveInstance, segment: number, call: number, message: CallMessage): Promise<void> {
    const core = this.#core;
    const { now } = core;
    const answer = (text: string): void => {
      if (core.segments.get(segment) === instance) core.answer(segment, call, text);
    };
    const [kind, key] = message;
    const entry = instance.history.get(key);
    if (kind === "get") return answer(await this.#value(instance, key));
    if (kind === "done" || kind === "failed") {
      if (entry?.outcome !== undefined) {
        await core.writer.drain(); // said twice: the first may not be durable yet
        return answer("");
      }
      const refused = this.#overLimit(instance, message);
      if (refused !== undefined) return this.fail(instance, refused);
      const [, , attempt, elapsedMs] = message;
      const base = {
        key,
        attempt,
        at: now,
        startedOn: now - elapsedMs,
        config: message.at(-1) as string | null,
      };
      const change =
        kind === "done"
          ? instance.record({ ...base, kind, value: message[4] })
          : instance.record({
              ...base,
              kind,
              error: JSON.stringify(message[4]),
              due: message[5] === null ? null : now + Math.min(message[5], dueMsMax),
            });
      instance.history.forgetValue(key);
      await core.commit(instance, [change, ...this.#progress(instance)]);
      return answer(instance.row.status === "waitingForPause" ? holdAnswer : "");
    }

    const pending: PendingCall = { call, key, due: 0, eventType: null };
    if (kind === "retry") {
      pending.due = entry?.due ?? now;
      return this.#pend(instance, pending, answer);
    }
    if (kind === "sleep") {
      const [, , forMs, untilMs] = message;
      pending.due = entry?.due ?? Math.min(untilMs ?? now + (forMs ?? 0), now + dueMsMax);
      // Not awaited: whatever is acknowledged later is written later.
      if (entry === undefined)
        this.#core.commitUnawaited(instance, [
          instance.record({ kind: "sleep", key, at: now, due: pending.due }),
        ]);
      return this.#pend(instance, pending, answer);
    }
    if (entry?.outcome !== undefined) return answer(JSON.stringify(await this.#waited(instance, entry)));
    const [, , eventType, timeoutMs] = message;
    pending.eventType = eventType;
    pending.due = entry?.due ?? now + Math.min(timeoutMs, dueMsMax);
    const changes =
      entry === undefined
        ? [instance.record({ kind: "wait", key, at: now, due: pending.due, value: eventType })]
        : [];
    const event = instance.takeEvent(eventType, pending.due);
    if (event !== undefined) {
      changes.push(instance.record({ kind: "event", key, at: event.at, value: event.payload }));
      changes.push({ kind: "consume", rid: instance.rid, number: event.number });
      await core.commit(instance, [...changes, ...this.#progress(instance)]);
      const reply: WaitAnswer = ["event", event.payload, event.type, event.at];
      return answer(JSON.stringify(reply));
    }
    if (pending.due <= now) {
      if (changes.length > 0) this.#core.commitUnawaited(instance, changes);
      return this.#timeout(instance, segment, pending);
    }
    if (changes.length > 0) this.#core.commitUnawaited(instance, changes);
    this.#pend(instance, pending, answer);
  }

  /** The answer to a wait that was said twice: the first one decided it, and may not be durable yet. */
  async #waited(instance: LiveInstance, { key, outcome, eventType, endedOn }: Entry): Promise<WaitAnswer> {
    await this.#core.writer.drain();
    if (outcome !== undefined && "error" in outcome)
      return ["timeout", JSON.parse(outcome.error) as ErrorMessage];
    return ["event", outcome?.value ?? (await this.#value(instance, key)), eventType ?? "", endedOn ?? 0];
  }

  #pend(instance: LiveInstance, pending: PendingCall, answer: (text: string) => void): void {
    if (pending.due <= this.#core.now) return answer("");
    instance.segment?.pending.set(pending.call, pending);
    this.#core.timers.arm(pending.due, instance.rid);
  }

  #timeout(instance: LiveInstance, segment: number, pending: PendingCall): void {
    const entry = instance.history.get(pending.key);
    if (entry?.outcome !== undefined) return; // a wait that was said twice: the first one is answered
    const error: ErrorMessage = {
      name: "WorkflowTimeoutError",
      message: `Execution timed out after ${pending.due - (entry?.startedOn ?? pending.due)}ms`,
    };
    const { now } = this.#core;
    const row = instance.record({ kind: "timeout", key: pending.key, at: now, error: JSON.stringify(error) });
    const answer: WaitAnswer = ["timeout", error];
    const reply = (): void => {
      if (this.#core.segments.get(segment) === instance)
        this.#core.answer(segment, pending.call, JSON.stringify(answer));
    };
    this.#core.commit(instance, [row]).then(reply, () => {}); // the instance is another node's, or has ended
  }

  /** What a segment leaves behind that only has waiting left to do. */
  #suspend(instance: LiveInstance, waiting: number): Change[] | undefined {
    const pending = [...(instance.segment?.pending.values() ?? [])];
    // An answer crossed the suspension on its way: there is something to go on with.
    if (pending.length === 0 || pending.length < waiting) return this.#core.move(instance, "lost");
    instance.row.wakeOn = Math.min(...pending.map(({ due }) => due));
    return this.#core.move(instance, "suspend");
  }

  /** Code that has come to its end, or to new steps, without the steps of its journal is not the code that wrote it. */
  #divergence(instance: LiveInstance, { unasked }: { unasked: string[] }): Change[] {
    if (unasked.length === 0) return [];
    const names = unasked
      .slice(0, 10)
      .map((key) => JSON.stringify(entryName(key)))
      .join(", ");
    const warning = `The workflow did not come to steps again that its journal has: ${names}. Its code is not deterministic, or has changed.`;
    if (instance.history.warnings.includes(warning)) return [];
    this.#core.options.onWarning?.(instance.row, warning);
    return [instance.record({ kind: "warning", key: "", at: this.#core.now, error: warning })];
  }

  #overLimit(instance: LiveInstance, message: CallMessage): ErrorMessage | undefined {
    const { history } = instance;
    const stepsMax = instance.segment?.stepsMax ?? 0;
    if (
      message[1].startsWith("do:") &&
      history.get(message[1]) === undefined &&
      history.stepCount >= stepsMax
    ) {
      return {
        name: "WorkflowInternalError",
        message: `The limit of ${stepsMax} steps has been reached. This limit can be changed in your worker configuration.`,
      };
    }
    const value = message[0] === "done" ? message[4] : "";
    const { valueBytesMax } = this.#core.options.limits;
    if (value.length > valueBytesMax && encodedBytes(value) > valueBytesMax) {
      return { name: "WorkflowInternalError", message: `Step ${entryName(message[1])} output is too large.` };
    }
    if (history.bytes + value.length > stateBytesMax) {
      return { name: "WorkflowInternalError", message: "The instance has exceeded the 1GiB storage limit" };
    }
    return undefined;
  }

  /** A result in the journal shows that the instance does not kill its cell. */
  #progress(instance: LiveInstance): Change[] {
    if (instance.row.crashes === 0) return [];
    instance.row.crashes = 0;
    this.#core.scheduler.cleared(instance.rid);
    return [instance.update(this.#core.now)];
  }

  async #value(instance: LiveInstance, key: string): Promise<string> {
    await this.#core.writer.drain();
    const rows = await this.#core.options.store.journal(instance.rid, instance.row.run);
    return (
      rows.find((row) => row.key === key && (row.kind === "done" || row.kind === "event"))?.value ??
      "tundefined"
    );
  }
}
