/** The result of a run of code that is not deployed, as the API answers. Times in milliseconds. */
export interface PreviewRun {
  outcome: "ok" | "exception" | "exceededCpu" | "exceededMemory" | "exceededTime" | "crashed";
  response: PreviewResponse | null;
  logs: PreviewLog[];
  logs_truncated: boolean;
  exceptions: { name: string; message: string; stack?: string }[];
  startup_time_ms: number;
  cpu_ms: number;
  wall_ms: number;
  subrequests: number;
}

interface PreviewResponse {
  status: number;
  headers: { name: string; value: string }[];
  body: string;
  body_encoding: "utf-8" | "base64";
  is_truncated: boolean;
}

interface PreviewLog {
  level: string;
  message: unknown[];
}

export const outcomes: Record<PreviewRun["outcome"], string> = {
  ok: "Answered",
  exception: "Threw an exception",
  exceededCpu: "Exceeded its CPU time",
  exceededMemory: "Exceeded its memory",
  exceededTime: "Did not end in time",
  crashed: "Took its process down",
};

/** The response as one text: status, headers, body. */
export function shownResponse({ status, headers, body, body_encoding: encoding }: PreviewResponse): string {
  const head = [`HTTP/1.1 ${status}`, ...headers.map(({ name, value }) => `${name}: ${value}`)];
  return [...head, "", encoding === "base64" ? `(base64) ${body}` : body].join("\n");
}

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** One line for each call of `console`. */
export const shownLogs = (logs: readonly PreviewLog[]): string =>
  logs.map(({ level, message }) => `${level.padEnd(5)} ${message.map(shown).join(" ")}`).join("\n");
