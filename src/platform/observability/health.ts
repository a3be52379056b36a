import type { Logger } from "pino";

export interface Health {
  /** Names of the parts that are not ready; empty if all are. */
  faults(): Promise<string[]>;
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

/** Readiness of named parts. Each call of `faults` runs their checks. */
export function healthOf(checks: Record<string, () => Promise<void>>, logger: Logger): Health {
  const parts = new Map<string, Part>(
    Object.entries(checks).map(([name, check]) => [name, { check, checking: undefined, isReady: true }]),
  );
  const look = (name: string, part: Part): Promise<boolean> => {
    part.checking ??= part
      .check()
      .then(
        () => {
          if (!part.isReady) logger.info({ part: name }, "ready again");
          return (part.isReady = true);
        },
        (error: unknown) => {
          if (part.isReady) logger.error({ part: name, err: error }, "not ready");
          return (part.isReady = false);
        },
      )
      .finally(() => (part.checking = undefined));
    return inTime(part.checking);
  };
  return {
    async faults() {
      const ready = await Promise.all([...parts].map(([name, part]) => look(name, part)));
      return [...parts.keys()].filter((_, index) => !ready[index]);
    },
  };
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
