/** The longest wait that an answer may ask for: the window of the public rate limit is five minutes. */
const retryAfterMsMax = 6 * 60_000;
const backoffMsMax = 30_000;

/** Milliseconds until a call is repeated: as the answer says, otherwise twice as long for each attempt. */
export function retryDelayMs(retryAfter: string | null, attempt: number, nowMs: number): number {
  const asked = parseRetryAfter(retryAfter, nowMs);
  return asked ?? Math.min(500 * 2 ** attempt, backoffMsMax);
}

/** Seconds, or a date (RFC 9110 §10.2.3). */
function parseRetryAfter(text: string | null, nowMs: number): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), retryAfterMsMax);
}
