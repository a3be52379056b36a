import { withoutSecrets } from "../../../platform/access-log/redact.ts";
import type { TailEvent } from "../../../workers/tail/event.ts";
import { writeText, type DataSet } from "./data-set.ts";

/** The runs of an account's scripts, and of its customers' scripts, as live logs show them. */
export const workersTraceEvents: DataSet<TailEvent> = {
  scope: "account",
  descriptions: {
    DispatchNamespace: "Namespace of a customer's script; string",
    Entrypoint: "Entrypoint that ran, if it has a name; string",
    Event: "Request, schedule, batch or call that the script ran for; object",
    EventTimestampMs: "When the run began, in milliseconds since 1970; int",
    EventType: "fetch, scheduled, queue, rpc, alarm or hibernatableWebSocket; string",
    Exceptions: "Exceptions of the run, with Name, Message, Stack and TimestampMs; array",
    Logs: "Lines of console, with Level, Message and TimestampMs; array",
    Outcome: "How the run ended: ok, canceled, exception, exceededCpu, exceededMemory or unknown; string",
    ScriptName: "Name of the script; string",
    ScriptVersion: "Version of the script, with ID; object",
    WallTimeMs: "Time from the start to the end of the run; int",
  },
  writers: () => ({
    DispatchNamespace: ({ dispatchNamespace }) => writeText(dispatchNamespace),
    Entrypoint: ({ entrypoint }) => writeText(entrypoint),
    Event: ({ event }) => JSON.stringify(shownEvent(event)),
    EventTimestampMs: ({ eventTimestamp }) => String(Math.floor(eventTimestamp)),
    EventType: ({ event }) => writeText(typeOf(event)),
    Exceptions: ({ exceptions }) =>
      JSON.stringify(
        exceptions.map(({ name, message, stack, timestamp }) => ({
          Name: name,
          Message: message,
          Stack: stack,
          TimestampMs: timestamp,
        })),
      ),
    Logs: ({ logs }) =>
      JSON.stringify(
        logs.map(({ level, message, timestamp }) => ({
          Level: level,
          Message: message,
          TimestampMs: timestamp,
        })),
      ),
    Outcome: ({ outcome }) => writeText(outcome),
    ScriptName: ({ scriptName }) => writeText(scriptName),
    ScriptVersion: ({ scriptVersion }) => JSON.stringify({ ID: scriptVersion.id }),
    WallTimeMs: ({ wallTime }) => String(Math.round(wallTime)),
  }),
};

function typeOf(event: TailEvent["event"]): string | undefined {
  if (event === null) return undefined;
  if ("request" in event) return "fetch";
  if ("cron" in event) return "scheduled";
  if ("queue" in event) return "queue";
  if ("rpcMethod" in event) return "rpc";
  return "getWebSocketEvent" in event ? "hibernatableWebSocket" : "alarm";
}

/** Headers of requests are left out, and so are credentials in URLs. */
function shownEvent(event: TailEvent["event"]): object | null {
  if (event === null) return null;
  if ("request" in event) {
    const { url, method } = event.request;
    return {
      Request: { URL: withoutSecrets(url), Method: method },
      ...(event.response === undefined ? {} : { Response: { Status: event.response.status } }),
    };
  }
  if ("cron" in event) return { Cron: event.cron, ScheduledTimeMs: event.scheduledTime };
  if ("queue" in event) return { Queue: event.queue, BatchSize: event.batchSize };
  if ("rpcMethod" in event) return { RPCMethod: event.rpcMethod };
  if ("getWebSocketEvent" in event) return { WebSocketEventType: event.getWebSocketEvent.webSocketEventType };
  return { ScheduledTime: event.scheduledTime };
}
