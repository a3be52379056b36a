import type { Answered } from "../helpers/writes.ts";

/** The outcome of a write. Only "refused" is certain to have had no effect. */
export type Fate = "acknowledged" | "refused" | "unknown";

const codeOf = (error: unknown): string => {
  const { name, cause } = error as Error & { cause?: { code?: string } };
  return name === "TimeoutError" ? "TimeoutError" : (cause?.code ?? "cut");
};

/** Counts writes, and why they were not acknowledged. */
export class Tally {
  sent = 0;
  acknowledged = 0;
  readonly causes = new Map<string, number>();
  /** Answers that a valid write must not get. */
  readonly faults: string[] = [];

  /** Sends one write. `isNew` says that the node may not yet know what it needs. */
  async write(
    what: string,
    send: () => Promise<Answered>,
    isNew = false,
  ): Promise<{ fate: Fate; answer?: Answered }> {
    this.sent++;
    let answer: Answered;
    try {
      answer = await send();
    } catch (error) {
      const code = codeOf(error);
      this.#count(
        code === "TimeoutError" ? "no answer in time" : code === "ECONNREFUSED" ? "not running" : "cut",
      );
      return { fate: code === "ECONNREFUSED" ? "refused" : "unknown" };
    }
    const { status, text } = answer;
    if (status < 300) {
      this.acknowledged++;
      return { fate: "acknowledged", answer };
    }
    if (isNew && status < 500) {
      this.#count("not known at this node yet");
      return { fate: "refused" };
    }
    this.#count(`${status}`);
    const isExpected = (status === 503 && answer.headers.get("retry-after") !== null) || status === 507;
    if (!isExpected) this.faults.push(`${what}: ${status} ${text.slice(0, 400)}`);
    return { fate: status === 503 || status === 500 ? "unknown" : "refused" };
  }

  #count(cause: string): void {
    this.causes.set(cause, (this.causes.get(cause) ?? 0) + 1);
  }
}
