import type { Logger } from "pino";

/** Does something from time to time, never twice at once. Returns what ends it, when what is under way is done. */
export function repeat(
  work: () => Promise<unknown>,
  { everyMs, firstMs = everyMs }: { everyMs: number; firstMs?: number },
  failed: { logger: Logger; message: string },
): () => Promise<void> {
  const attempt = async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failed.logger.warn({ err: error }, failed.message);
    }
  };
  let running = Promise.resolve();
  let timer: NodeJS.Timeout;
  let isEnded = false;
  const after = (delayMs: number): void => {
    if (isEnded) return;
    timer = setTimeout(() => {
      running = attempt().finally(() => after(everyMs));
    }, delayMs);
    timer.unref();
  };
  after(firstMs);
  return async () => {
    isEnded = true;
    clearTimeout(timer);
    await running;
  };
}
