import type { RunHooks } from "../../../src/sandbox/gateway/run-hooks.ts";

export interface Row {
  protocol: string;
  messages: number;
  /** Answers to innocent runs during the attack, and the number of wrong ones. */
  innocent: number;
  changed: number;
  grewMebibytes: number;
}

export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Keeps an innocent run going during `attack`. */
export async function beside(
  protocol: string,
  messages: number,
  attack: () => Promise<void>,
  innocent: () => Promise<boolean>,
): Promise<Row> {
  const before = process.memoryUsage().rss;
  const row: Row = { protocol, messages, innocent: 0, changed: 0, grewMebibytes: 0 };
  const state = { isOver: false };
  const good = (async () => {
    do {
      if (!(await innocent())) row.changed++;
      row.innocent++;
      row.grewMebibytes = Math.max(row.grewMebibytes, (process.memoryUsage().rss - before) / 2 ** 20);
      await settle();
    } while (!state.isOver);
  })();
  await attack();
  state.isOver = true;
  await good;
  return row;
}

export const answering = (text: string): RunHooks => ({
  fetch: (_url, request, response) =>
    void request
      .resume()
      .on("end", () => response.end(text))
      .on("error", () => {}),
  nested: async () => Promise.reject(new Error("there is none")),
  dispatch: async (_, options) => Promise.reject(new Error(`not ${options}`)),
  child: async () => answering("child"),
});
