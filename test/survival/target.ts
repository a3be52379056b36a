import { readFileSync } from "node:fs";
import { benchToken, startSelvedge, type Started } from "../../bench/lib/child.ts";
import { callsOf, type Calls } from "../runtime/platform.ts";

/** The attacked platform in a separate process, with its own reports afterwards. */
export interface Target extends Calls {
  started: Started;
  token: string;
  /** The local authority, in PEM. */
  authority: string;
  /** The number of uncaught exceptions. Rejects if the process has exited. */
  uncaught(): Promise<number>;
  /** Calls the API, which must succeed. */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startTarget(args: readonly string[] = []): Promise<Target> {
  const started = await startSelvedge([
    ...["--edge-tls-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--private-networks", "all"],
    ...args,
  ]);
  const { ready } = started;
  return {
    ...(await callsOf(ready, benchToken)),
    started,
    token: benchToken,
    authority: readFileSync(ready.tls_authority!, "utf8"),
    async uncaught() {
      process.kill(ready.pid, 0); // throws if the process has exited
      const text = await (await fetch(ready.metrics!)).text();
      const counts = [...text.matchAll(/^selvedge_uncaught_exceptions_total\{.*\} (\d+)$/gm)];
      if (counts.length !== 2) throw new Error("the metrics do not count uncaught exceptions");
      return counts.reduce((sum, [, count]) => sum + Number(count), 0);
    },
    async call(method, path, body) {
      const response = await fetch(`${ready.api}${path}`, {
        method,
        headers: { authorization: `Bearer ${benchToken}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answer = (await response.json()) as { success: boolean; result: unknown; errors: unknown };
      if (!answer.success) throw new Error(`${method} ${path}: ${JSON.stringify(answer.errors)}`);
      return answer.result;
    },
    stop: async () => started.stop(),
  };
}
