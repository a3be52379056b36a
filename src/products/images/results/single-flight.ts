interface Flight<T> {
  result: Promise<T>;
  controller: AbortController;
  waiting: number;
}

/** Runs work once for concurrent callers. When the last caller leaves, the work is aborted. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  async run(
    key: string,
    work: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    signal?.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.waiting += 1;
    const { promise: left, reject } = Promise.withResolvers<never>();
    const leave = (): void => reject(signal!.reason as Error);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([flight.result, left]);
    } finally {
      signal?.removeEventListener("abort", leave);
      flight.waiting -= 1;
      if (flight.waiting === 0 && this.#flights.get(key) === flight) {
        this.#flights.delete(key);
        flight.controller.abort(new Error("no caller waits for it"));
      }
    }
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const result = work(controller.signal).finally(() => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    });
    result.catch(() => {}); // all callers may have left
    const flight: Flight<T> = { result, controller, waiting: 0 };
    this.#flights.set(key, flight);
    return flight;
  }
}
