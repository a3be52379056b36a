import type { ApiClient } from "./api-client.ts";
import type { ControlClient } from "./control-client.ts";
import { watchScript, type ScriptLogs } from "./script-logs.ts";

/** The outcome of an event's handler. */
export interface EventOutcome {
  outcome: "ok" | "exception";
  error?: { name: string; message: string };
}

/** The outcome of a queue's handler, with the fields of workerd's `Fetcher.queue`. */
export interface BatchOutcome extends EventOutcome {
  ackAll?: boolean;
  retryBatch?: { retry: boolean; delaySeconds?: number };
  explicitAcks?: readonly string[];
  retryMessages?: readonly { msgId: string; delaySeconds?: number }[];
}

/** A message of a batch. Its body is JSON. */
export interface TestMessage {
  id?: string;
  timestamp?: Date;
  attempts?: number;
  body: unknown;
}

/** A deployed script. Its handlers are run at once, without a host, a schedule or a queue. */
export interface DrivenScript {
  fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
  scheduled(event?: { cron?: string; scheduledTime?: Date }): Promise<EventOutcome>;
  queue(queue: string, messages: readonly TestMessage[]): Promise<BatchOutcome>;
  /** Begins to watch its runs, also those that other causes start. Needs Node 22 or newer. */
  logs(): Promise<ScriptLogs>;
}

/** The account of a script, and the dispatch namespace of a customer's script. */
export interface ScriptPlace {
  accountId?: string;
  namespace?: string;
}

/** The platform that runs a script, and the account of tests that name none. */
export interface ScriptPlatform {
  control: ControlClient;
  api: ApiClient;
  accountId: string;
}

export function drivenScript(
  platform: ScriptPlatform,
  name: string,
  { accountId, namespace }: ScriptPlace = {},
): DrivenScript {
  const { control, api } = platform;
  const place = Object.entries({ account: accountId, namespace }).filter(([, value]) => value !== undefined);
  const query = String(new URLSearchParams(place as [string, string][]));
  const path = (what: string): string => `/scripts/${encodeURIComponent(name)}/${what}?${query}`;
  return {
    fetch: async (url, init) => fetchThrough(control, path("fetch"), new Request(url, init)),
    scheduled: async ({ cron, scheduledTime } = {}) =>
      control.json("POST", path("scheduled"), {
        ...(cron === undefined ? {} : { cron }),
        ...(scheduledTime === undefined ? {} : { at: scheduledTime.toISOString() }),
      }),
    queue: async (queue, messages) =>
      control.json("POST", path("queue"), {
        queue,
        messages: messages.map(({ timestamp, ...message }) => ({
          ...message,
          ...(timestamp === undefined ? {} : { timestamp: timestamp.toISOString() }),
        })),
      }),
    logs: async () =>
      watchScript(api, { accountId: accountId ?? platform.accountId, script: name, namespace }),
  };
}

async function fetchThrough({ address }: ControlClient, path: string, request: Request): Promise<Response> {
  const { url, method, headers, body } = request;
  const described = Buffer.from(JSON.stringify({ url, method, headers: [...headers] })).toString("base64url");
  const answer = await fetch(`${address.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${address.token}`,
      "x-selvedge-request": described,
    },
    redirect: "manual",
    ...(body === null ? {} : { body: await request.arrayBuffer() }),
  });
  if (answer.headers.get("selvedge-script") !== null) return answer;
  const { error } = (await answer.json().catch(() => ({}))) as { error?: string };
  throw new Error(error ?? `The control surface answered ${answer.status}`);
}
