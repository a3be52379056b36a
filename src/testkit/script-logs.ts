import { once } from "node:events";
import type { ApiClient } from "./api-client.ts";

/** A run of a script, as live logs show it. */
export interface LoggedRun {
  scriptName: string;
  /** The dispatch namespace of a customer's script. */
  dispatchNamespace?: string;
  outcome: "ok" | "canceled" | "exception" | "exceededCpu" | "exceededMemory" | "unknown";
  /** The cause of the run: a request, a schedule, a batch of a queue, or a call. */
  event: Readonly<Record<string, unknown>> | null;
  eventTimestamp: number;
  logs: readonly { level: string; message: readonly unknown[]; timestamp: number }[];
  exceptions: readonly { name: string; message: string; stack?: string; timestamp: number }[];
  readonly [field: string]: unknown;
}

/** The runs of a script since a test began to watch it. */
export interface ScriptLogs extends AsyncDisposable {
  /** Resolves with all runs so far once there are `count`. Throws an Error after `ms`, 5,000 by default. */
  runs(count: number, ms?: number): Promise<LoggedRun[]>;
  close(): Promise<void>;
}

const runsMax = 10_000;
const waitMsDefault = 5000;

/** Watches the runs of a script, which need not exist yet. Keeps the latest 10,000 runs. */
export async function watchScript(
  api: ApiClient,
  { accountId, script, namespace }: { accountId: string; script: string; namespace: string | undefined },
): Promise<ScriptLogs> {
  if (typeof WebSocket === "undefined")
    throw new Error(`Expected Node 22 or newer for logs(): Node ${process.versions.node} has no WebSocket`);
  const tails = `/accounts/${accountId}/workers/tails`;
  const { id, url } = await api.call<{ id: string; url: string }>("POST", tails);
  const socket = new WebSocket(url, "trace-v1");
  const runs: LoggedRun[] = [];
  const arrived = new EventTarget();
  socket.addEventListener("message", ({ data }: { data: unknown }) => {
    const run = JSON.parse(String(data)) as LoggedRun;
    if (run.scriptName !== script || run.dispatchNamespace !== namespace) return;
    runs.push(run);
    if (runs.length > runsMax) runs.shift();
    arrived.dispatchEvent(new Event("run"));
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () =>
      reject(new Error(`The live logs of ${script} could not be opened`)),
    );
  });
  const close = async (): Promise<void> => {
    socket.close();
    await api.call("DELETE", `${tails}/${id}`).catch(() => {}); // a reset has ended the live log already
  };
  return {
    async runs(count, ms = waitMsDefault) {
      const signal = AbortSignal.timeout(ms);
      while (runs.length < count)
        await once(arrived, "run", { signal }).catch(() => {
          throw new Error(
            `Expected ${count} runs of ${script} within ${ms} ms, and there were ${runs.length}`,
          );
        });
      return [...runs];
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
