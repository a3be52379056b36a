import type { Logger } from "pino";

/**
 * Runs `work` periodically, without overlap. Returns a function that stops it and waits for the current run.
 */
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
