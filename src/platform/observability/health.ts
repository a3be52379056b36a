import type { Logger } from "pino";

/** The readiness of the platform, as `/readyz` answers it. */
export interface Health {
  /** Names of the parts that are not ready; empty if all are. */
  faults(): Promise<string[]>;
  /** "test" if tests can control the platform. */
  readonly mode?: "test" | undefined;
}

/** A check that takes longer counts as failed. */
const answerMs = 2000;

interface Part {
  /** Rejects while the part is not ready. */
  check: () => Promise<void>;
  /** The check in progress, so that no second check starts while one hangs. */
  checking: Promise<boolean> | undefined;
  isReady: boolean;
}

/**
 * Readiness of a node: of its named parts, while it is serving. Each call of `faults` runs the checks of the
 * parts.
 */
export class NodeHealth implements Health {
  /** False before all listeners accept connections, and after the signal to stop. */
  phase: "starting" | "serving" | "stopping" = "starting";
  mode: "test" | undefined;
  readonly #parts = new Map<string, Part>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `check` rejects while the part is not ready. */
  add(name: string, check: () => Promise<void>): void {
    this.#parts.set(name, { check, checking: undefined, isReady: true });
  }

  async faults(): Promise<string[]> {
    if (this.phase !== "serving") return [this.phase];
    const ready = await Promise.all([...this.#parts].map(([name, part]) => this.#check(name, part)));
    return [...this.#parts.keys()].filter((_, index) => !ready[index]);
  }

  #check(name: string, part: Part): Promise<boolean> {
    part.checking ??= part
      .check()
      .then(
        () => {
          if (!part.isReady) this.#logger.info({ part: name }, "ready again");
          return (part.isReady = true);
        },
        (error: unknown) => {
          if (part.isReady) this.#logger.error({ part: name, err: error }, "not ready");
          return (part.isReady = false);
        },
      )
      .finally(() => (part.checking = undefined));
    return inTime(part.checking);
  }
}

async function inTime(checking: Promise<boolean>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, answerMs, false);
  try {
    return await Promise.race([checking, late]);
  } finally {
    clearTimeout(timer);
  }
}
