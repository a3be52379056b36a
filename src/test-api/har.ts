import type { RecordedCall } from "./journal.ts";

/** Calls in the HTTP Archive format 1.2, which browsers and other tools open. */
export function harOf(calls: readonly RecordedCall[], base: string): object {
  return {
    log: {
      version: "1.2",
      creator: { name: "Selvedge", version: "1" },
      entries: calls.map((call) => entryOf(call, base)),
    },
  };
}

function entryOf(call: RecordedCall, base: string): object {
  const query = new URLSearchParams(call.query).toString();
  const content = (value: unknown): string => (value === null ? "" : JSON.stringify(value));
  const body = content(call.body);
  const answer = content(call.response);
  return {
    startedDateTime: call.at,
    time: call.ms,
    request: {
      method: call.method,
      url: `${base}${call.path}${query === "" ? "" : `?${query}`}`,
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: pairs(call.headers),
      queryString: pairs(call.query),
      headersSize: -1,
      bodySize: body.length,
      ...(body === "" ? {} : { postData: { mimeType: "application/json", text: body } }),
    },
    response: {
      status: call.status,
      statusText: "",
      httpVersion: "HTTP/1.1",
      cookies: [],
      headers: [],
      content: { size: answer.length, mimeType: "application/json", text: answer },
      redirectURL: "",
      headersSize: -1,
      bodySize: answer.length,
    },
    cache: {},
    timings: { send: 0, wait: call.ms, receive: 0 },
    comment: [call.operation ?? "no operation", ...call.changed].join("; "),
  };
}

const pairs = (values: Readonly<Record<string, string>>): object[] =>
  Object.entries(values).map(([name, value]) => ({ name, value }));
