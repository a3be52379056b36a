/** Alarms of one owner that run at the same time: each of its cells has one thread. */
export const runningMax = 32;
/** Maximum for one namespace: a handler may wait for minutes, and other customers' namespaces have the same owner. */
export const namespaceRunningMax = 8;

/** The due alarms of one owner of cells. The owner's namespaces take turns; namespaces at their limit are skipped. */
export class AlarmLine<T extends { readonly namespace: string }> {
  readonly #waiting = new Map<string, Set<T>>();
  readonly #runningOf = new Map<string, number>();
  #running = 0;

  get isEmpty(): boolean {
    return this.#running === 0 && this.#waiting.size === 0;
  }

  add(alarm: T): void {
    const waiting = this.#waiting.get(alarm.namespace);
    if (waiting === undefined) this.#waiting.set(alarm.namespace, new Set([alarm]));
    else waiting.add(alarm);
  }

  /** Removes an alarm that waits. */
  delete(alarm: T): void {
    const waiting = this.#waiting.get(alarm.namespace);
    waiting?.delete(alarm);
    if (waiting?.size === 0) this.#waiting.delete(alarm.namespace);
  }

  /** Takes an alarm that may run now; undefined if none may. The caller must call `end` after the run. */
  take(): T | undefined {
    if (this.#running >= runningMax) return undefined;
    for (const [namespace, waiting] of this.#waiting) {
      const running = this.#runningOf.get(namespace) ?? 0;
      if (running >= namespaceRunningMax) continue;
      const [alarm] = waiting;
      this.#waiting.delete(namespace);
      waiting.delete(alarm!);
      if (waiting.size > 0) this.#waiting.set(namespace, waiting); // behind the others
      this.#running++;
      this.#runningOf.set(namespace, running + 1);
      return alarm;
    }
    return undefined;
  }

  /** Call when an alarm that was taken has run. */
  end({ namespace }: T): void {
    this.#running--;
    const running = this.#runningOf.get(namespace)! - 1;
    if (running === 0) this.#runningOf.delete(namespace);
    else this.#runningOf.set(namespace, running);
  }
}
