import type { EndedAttempt, InvocationListener } from "../cells/invocation-runner.ts";
import type { InstanceChange } from "../store/batch.ts";
import { RefusedError, type EngineState } from "./engine-state.ts";
import type { LiveInstance, PendingCall } from "./live-instance.ts";
import { FencedError, RefusedWriteError } from "../store/writer.ts";
import { entryName, type JournalEntry } from "../store/journal.ts";
import { malformedMessage, readCall, readNote } from "../cells/parsed-messages.ts";
import { encodedBytes } from "../worker/codec.ts";
import {
  pauseReply,
  outputTooLarge,
  type CallMessage,
  type Ending,
  type ErrorMessage,
  type NoteMessage,
  type WaitAnswer,
} from "../worker/messages.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** An instance fails after this many cells have died under it without progress. */
const crashesMax = 3;
const dueMsMax = 366 * 86_400_000;
const stateBytesMax = 1024 ** 3;
/** Sleeps and waits per instance. */
const waitsMax = 20_000;
/** Journal rows per instance. The journal is in memory while the instance runs. */
const rowsMax = 200_000;

/** Handles the calls of invocations. Calls of a fenced invocation are dropped. */
export class InvocationCalls implements InvocationListener {
  /** Ended attempts of steps by result. */
  readonly attempts = { ok: 0, retried: 0, failed: 0 };
  readonly #state: EngineState;

  constructor(state: EngineState) {
    this.#state = state;
  }

  call(invocation: number, call: number, text: string): Promise<void> | undefined {
    const instance = this.#state.invocations.get(invocation);
    if (instance === undefined) return undefined;
    const message = readCall(text);
    if (message === undefined) {
      this.fail(instance, malformedMessage);
      return undefined;
    }
    return this.#answer(instance, invocation, call, message).catch((error: unknown) => {
      if (error instanceof FencedError) return; // another node owns the instance
      if (error instanceof RefusedError) return; // the instance was removed
      if (error instanceof RefusedWriteError) return; // the instance has ended
      this.#state.options.onFault(error, "a call of a workflow instance could not be handled");
    });
  }

  note(invocation: number, text: string): void {
    const instance = this.#state.invocations.get(invocation);
    if (instance === undefined) return;
    const message = readNote(text);
    if (message === undefined) return this.fail(instance, malformedMessage);
    const [, key, attempt, elapsedMs, config] = message;
    const entry = instance.history.get(key);
    if (entry?.outcome !== undefined) return;
    if (attempt <= (entry?.attempts.at(-1)?.number ?? 0)) return; // this attempt is in the journal already
    const refused = this.#overLimit(instance, message);
    if (refused !== undefined) return this.fail(instance, refused);
    const { now } = this.#state;
    const row = instance.record({ kind: "start", key, attempt, at: now, startedOn: now - elapsedMs, config });
    this.#state.commitUnawaited(instance, [row]);
  }

  ended(invocation: number, ending: Ending): void {
    const instance = this.#state.invocations.get(invocation);
    if (instance === undefined) return;
    const warnings = "unasked" in ending ? this.#divergence(instance, ending) : [];
    let moved: InstanceChange[] | undefined;
    switch (ending.end) {
      case "return":
        if (encodedBytes(ending.value) > this.#state.options.limits.valueBytesMax) {
          return this.fail(instance, outputTooLarge);
        }
        instance.row.output = ending.value;
        moved = this.#state.move(instance, "return");
        break;
      case "throw":
        instance.row.error = JSON.stringify({ ...ending.error, rollback: ending.rollback });
        moved = this.#state.move(instance, "throw");
        break;
      case "held":
        // The invocation may have missed a late resume; the instance then continues at once.
        moved = this.#state.move(instance, instance.row.status === "waitingForPause" ? "suspend" : "lost");
        break;
      case "suspend":
        moved = this.#suspend(instance, ending.waiting);
        break;
    }
    this.#state.commitUnawaited(instance, [...warnings, ...(moved ?? [])]);
  }

  lost(invocation: number, mayBeCulprit: boolean): void {
    const instance = this.#state.invocations.get(invocation);
    if (instance === undefined) return;
    if (mayBeCulprit && ++instance.row.crashes >= crashesMax) {
      const message = `The process that ran this instance ended ${crashesMax} times before the instance got any further: it runs out of memory or time, or ends its process.`;
      return this.fail(instance, { name: "WorkflowInternalError", message });
    }
    this.#state.commitUnawaited(instance, this.#state.move(instance, "lost") ?? []);
  }

  /** Answers the due calls of a running instance. */
  due(instance: LiveInstance): void {
    const { invocation } = instance;
    if (invocation === undefined) return;
    const { now } = this.#state;
    for (const pending of invocation.pending.values()) {
      if (pending.due > now) continue;
      invocation.pending.delete(pending.call);
      if (pending.eventType === null) this.#state.answer(invocation.number, pending.call, "");
      else this.#timeout(instance, invocation.number, pending);
    }
  }

  /** Gives an event to a waiting call of a running instance, if there is one. */
  deliver(
    instance: LiveInstance,
    event: { type: string; payload: string; at: number },
  ): { changes: InstanceChange[]; done: () => void } | undefined {
    const { invocation } = instance;
    for (const pending of invocation?.pending.values() ?? []) {
      if (pending.eventType !== event.type || pending.due <= event.at) continue;
      if (instance.history.get(pending.key)?.outcome !== undefined) continue; // a duplicate call for this wait
      invocation!.pending.delete(pending.call);
      const changes = [
        instance.record({ kind: "event", key: pending.key, at: event.at, value: event.payload }),
      ];
      const answer: WaitAnswer = ["event", event.payload, event.type, event.at];
      return {
        changes,
        done: () => this.#state.answer(invocation!.number, pending.call, JSON.stringify(answer)),
      };
    }
    return undefined;
  }

  fail(instance: LiveInstance, error: ErrorMessage): void {
    instance.row.error = JSON.stringify(error);
    this.#state.commitUnawaited(instance, this.#state.move(instance, "throw") ?? []);
  }

  async #answer(
    instance: LiveInstance,
    invocation: number,
    call: number,
    message: CallMessage,
  ): Promise<void> {
    const state = this.#state;
    const { now } = state;
    const answer = (text: string): void => {
      if (state.invocations.get(invocation) === instance) state.answer(invocation, call, text);
    };
    const [kind, key] = message;
    const entry = instance.history.get(key);
    if (kind === "get") return answer(await this.#value(instance, key));
    const refused = entry?.outcome === undefined ? this.#overLimit(instance, message) : undefined;
    if (refused !== undefined) return this.fail(instance, refused);
    if (kind === "done" || kind === "failed") {
      if (entry?.outcome !== undefined) {
        await state.writer.drain(); // a duplicate message: the first may not be durable yet
        return answer("");
      }
      const change = this.#outcome(instance, message);
      state.options.cells.attempted?.(invocation, attemptOf(message));
      instance.history.forgetValue(key);
      await state.commit(instance, [change, ...this.#progress(instance)]);
      return answer(instance.row.status === "waitingForPause" ? pauseReply : "");
    }

    const pending: PendingCall = { call, key, due: entry?.due ?? dueOf(message, now), eventType: null };
    if (kind === "retry") return this.#pend(instance, pending, answer);
    if (kind === "sleep") {
      // Not awaited: writes are ordered, so a later acknowledgement implies this one.
      if (entry === undefined)
        this.#state.commitUnawaited(instance, [
          instance.record({ kind: "sleep", key, at: now, due: pending.due }),
        ]);
      return this.#pend(instance, pending, answer);
    }
    if (entry?.outcome !== undefined) return answer(JSON.stringify(await this.#waited(instance, entry)));
    const [, , eventType] = message;
    pending.eventType = eventType;
    const changes =
      entry === undefined
        ? [instance.record({ kind: "wait", key, at: now, due: pending.due, value: eventType })]
        : [];
    const event = instance.takeEvent(eventType, pending.due);
    if (event !== undefined) {
      changes.push(instance.record({ kind: "event", key, at: event.at, value: event.payload }));
      changes.push({ kind: "consume", rid: instance.rid, number: event.number });
      await state.commit(instance, [...changes, ...this.#progress(instance)]);
      const reply: WaitAnswer = ["event", event.payload, event.type, event.at];
      return answer(JSON.stringify(reply));
    }
    if (changes.length > 0) state.commitUnawaited(instance, changes);
    if (pending.due <= now) this.#timeout(instance, invocation, pending);
    else this.#pend(instance, pending, answer);
  }

  /** The journal row of an attempt that has ended. */
  #outcome(instance: LiveInstance, message: CallMessage & { 0: "done" | "failed" }): InstanceChange {
    const { now } = this.#state;
    const [, key, attempt, elapsedMs] = message;
    const config = message[0] === "done" ? message[5] : message[6];
    const base = { key, attempt, at: now, startedOn: now - elapsedMs, config };
    this.attempts[message[0] === "done" ? "ok" : message[5] === null ? "failed" : "retried"]++;
    if (message[0] === "done") return instance.record({ ...base, kind: "done", value: message[4] });
    const due = message[5] === null ? null : now + Math.min(message[5], dueMsMax);
    return instance.record({ ...base, kind: "failed", error: JSON.stringify(message[4]), due });
  }

  /** The answer to a duplicate wait. The first call decided it, and its outcome may not be durable yet. */
  async #waited(
    instance: LiveInstance,
    { key, outcome, eventType, endedOn }: JournalEntry,
  ): Promise<WaitAnswer> {
    await this.#state.writer.drain();
    if (outcome !== undefined && "error" in outcome)
      return ["timeout", JSON.parse(outcome.error) as ErrorMessage];
    return ["event", outcome?.value ?? (await this.#value(instance, key)), eventType ?? "", endedOn ?? 0];
  }

  #pend(instance: LiveInstance, pending: PendingCall, answer: (text: string) => void): void {
    if (pending.due <= this.#state.now) return answer("");
    instance.invocation?.pending.set(pending.call, pending);
    this.#state.timers.arm(pending.due, instance.rid);
  }

  #timeout(instance: LiveInstance, invocation: number, pending: PendingCall): void {
    const entry = instance.history.get(pending.key);
    if (entry?.outcome !== undefined) return; // a duplicate call for this wait; the first one is answered
    const error: ErrorMessage = {
      name: "WorkflowTimeoutError",
      message: `Execution timed out after ${pending.due - (entry?.startedOn ?? pending.due)}ms`,
    };
    const { now } = this.#state;
    const row = instance.record({ kind: "timeout", key: pending.key, at: now, error: JSON.stringify(error) });
    const answer: WaitAnswer = ["timeout", error];
    const reply = (): void => {
      if (this.#state.invocations.get(invocation) === instance)
        this.#state.answer(invocation, pending.call, JSON.stringify(answer));
    };
    unawaited(this.#state.commit(instance, [row]).then(reply, () => {})); // another node owns the instance, or it has ended
  }

  /** Suspends an instance whose invocation ended with only waiting calls open. */
  #suspend(instance: LiveInstance, waiting: number): InstanceChange[] | undefined {
    const pending = [...(instance.invocation?.pending.values() ?? [])];
    // An answer was sent while the invocation was suspending, so the instance continues at once.
    if (pending.length === 0 || pending.length < waiting) return this.#state.move(instance, "lost");
    instance.row.wakeOn = Math.min(...pending.map(({ due }) => due));
    return this.#state.move(instance, "suspend");
  }

  /**
   * When code finishes or reaches new steps without the steps of the journal, it differs from the code that
   * wrote the journal.
   */
  #divergence(instance: LiveInstance, { unasked }: { unasked: string[] }): InstanceChange[] {
    if (unasked.length === 0) return [];
    const names = unasked
      .slice(0, 10)
      .map((key) => JSON.stringify(entryName(key)))
      .join(", ");
    const warning = `The workflow did not reach these steps of its journal again: ${names}. Its code is not deterministic, or has changed.`;
    if (instance.history.warnings.includes(warning)) return [];
    this.#state.options.onWarning?.(instance.row, warning);
    return [instance.record({ kind: "warning", key: "", at: this.#state.now, error: warning })];
  }

  #overLimit(
    { history, invocation }: LiveInstance,
    message: CallMessage | NoteMessage,
  ): ErrorMessage | undefined {
    const [kind, key] = message;
    const isNew = history.get(key) === undefined;
    const stepsMax = invocation?.stepsMax ?? 0;
    if (isNew && key.startsWith("do:") && history.stepCount >= stepsMax)
      return internalError(
        `The limit of ${stepsMax} steps has been reached. This limit can be changed in your worker configuration.`,
      );
    // Each step may also have a rollback.
    if (isNew && !key.startsWith("do:") && history.entries.size - 2 * history.stepCount >= waitsMax)
      return internalError(`The limit of ${waitsMax} sleeps and waits has been reached.`);
    if (history.size >= rowsMax)
      return internalError(`The limit of ${rowsMax} attempts, sleeps and waits has been reached.`);
    const value = kind === "done" ? message[4] : "";
    const { valueBytesMax } = this.#state.options.limits;
    if (value.length > valueBytesMax && encodedBytes(value) > valueBytesMax)
      return internalError(`Step ${entryName(key)} output is too large.`);
    if (history.bytes + value.length > stateBytesMax)
      return internalError("The instance has exceeded the 1GiB storage limit");
    return undefined;
  }

  /** A result in the journal shows that the instance makes progress, so its count of dead cells is reset. */
  #progress(instance: LiveInstance): InstanceChange[] {
    if (instance.row.crashes === 0) return [];
    instance.row.crashes = 0;
    this.#state.scheduler.cleared(instance.rid);
    return [instance.update(this.#state.now)];
  }

  async #value(instance: LiveInstance, key: string): Promise<string> {
    await this.#state.writer.drain();
    const rows = await this.#state.options.store.journal(instance.rid, instance.row.run);
    return (
      rows.find((row) => row.key === key && (row.kind === "done" || row.kind === "event"))?.value ??
      "tundefined"
    );
  }
}

const attemptOf = (message: CallMessage & { 0: "done" | "failed" }): EndedAttempt => ({
  name: entryName(message[1]),
  attempt: message[2],
  sinceMs: message[0] === "done" ? message[6] : message[7],
  hasFailed: message[0] === "failed",
});

/** When a retry may start, a sleep is over, or a wait times out. */
function dueOf(message: CallMessage & { 0: "retry" | "sleep" | "wait" }, now: number): number {
  const [kind, , first, second] = message;
  if (kind === "retry") return now;
  return kind === "sleep"
    ? Math.min(second ?? now + (first ?? 0), now + dueMsMax)
    : now + Math.min(second, dueMsMax);
}

const internalError = (message: string): ErrorMessage => ({ name: "WorkflowInternalError", message });
