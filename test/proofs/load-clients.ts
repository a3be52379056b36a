import { request as httpRequest, type Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface EdgeResponse {
  status: number;
  /** Of the platform's own errors. */
  code: string;
  body: string;
}
export interface Ask {
  edge: string;
  host: string;
  path?: string;
  body?: string;
  agent?: Agent;
  signal?: AbortSignal;
}

const timeoutMs = 60_000;
const refusedMs = 1000;
const inFlightMax = 150;

/** One request of a visitor. A failed request counts as an answer with the status 0. */
export function ask({ edge, host, path = "/", body, agent, signal }: Ask): Promise<EdgeResponse> {
  return new Promise((resolve) => {
    const failed = (error: Error): void => resolve({ status: 0, code: "", body: error.message });
    const outgoing = httpRequest(
      `${edge}${path}`,
      {
        method: body === undefined ? "GET" : "POST",
        headers: { host, accept: "application/json" },
        ...(agent === undefined ? { agent: false } : { agent }),
        ...(signal === undefined ? {} : { signal }),
        timeout: timeoutMs,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part: string) => (text += part));
        response.on("error", failed);
        response.on("end", () => {
          const code = /"code":(\d+)/.exec(text)?.[1] ?? "";
          resolve({ status: response.statusCode ?? 0, code, body: text });
        });
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in a minute")));
    outgoing.on("error", failed);
    outgoing.end(body);
  });
}

/** The number of answers of each kind. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add({ status, code, body }: EdgeResponse): void {
    const name = `${status || body.slice(0, 40)}${code === "" ? "" : `/${code}`}`;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  get text(): string {
    return [...this.#counts].map(([name, count]) => `${count} × ${name}`).join(", ");
  }
}

/** Keeps so many requests in flight until the signal. */
export async function keepAsking(count: number, of: Ask, tally: Tally, signal: AbortSignal): Promise<void> {
  const client = async (): Promise<void> => {
    while (!signal.aborted) {
      const answer = await ask({ ...of, signal });
      if (signal.aborted) return;
      tally.add(answer);
      // A visitor who is refused comes again, but is no flood.
      if (answer.status !== 200) await sleep(refusedMs, undefined, { signal }).catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: count }, client));
}

/**
 * Asks steadily, however long answers take, as independent visitors do. On a machine that is too slow for the rate there are no
 * more in flight than a small site has: else it would be the innocent who overload it.
 */
export async function askSteadily(
  perSecond: number,
  signal: AbortSignal,
  visit: (i: number) => Promise<void>,
): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  const startedAt = performance.now();
  for (let sent = 0; !signal.aborted;) {
    const due = ((performance.now() - startedAt) * perSecond) / 1000;
    for (; sent < due && inFlight.size < inFlightMax; sent++) {
      const work = visit(sent).finally(() => inFlight.delete(work));
      inFlight.add(work);
    }
    await sleep(5);
  }
  await Promise.all(inFlight);
}
