/*
 * A workflow stream carries frames in both directions; a WebSocket message holds any number of them. A frame
 * is a header line (kind, invocation, call, length of the text) followed by the text, so a text cannot pass
 * for another frame. An invocation's own message is a line of JSON, followed by the text of a value if it has
 * one. The value is not part of the JSON.
 */

/**
 * Longest text of an invocation in UTF-16 units. The longest values have 1 MiB (`valueBytesMax`), a third
 * more as base64.
 */
export const textLengthMax = 2 * 1024 * 1024;
/** A WebSocket message ends with the first frame that exceeds this length. */
export const batchLengthMax = 256 * 1024;
/** Bytes of a WebSocket message: at most three for each UTF-16 unit. */
export const messageBytesMax = 3 * (batchLengthMax + textLengthMax + 64);
/** Unanswered calls of an invocation: all of its open steps, sleeps and waits. */
export const openCallsMax = 50_000;

/** `text` must be well-formed Unicode, so that its length survives UTF-8. */
export const frame = (kind: string, invocation: number, call: number, text: string): string =>
  `${kind} ${invocation} ${call} ${text.length}\n${text}`;

const head = /([A-Z]) (\d{1,16}) (\d{1,10}) (\d{1,9})\n/y;

/** Calls back with each frame of a message. Returns false at the first malformed frame. */
export function readFrames(
  message: string,
  take: (kind: string, invocation: number, call: number, text: string) => void,
): boolean {
  for (let at = 0; at < message.length;) {
    head.lastIndex = at;
    const found = head.exec(message);
    if (found === null) return false;
    const start = head.lastIndex;
    at = start + Number(found[4]);
    if (at > message.length) return false;
    take(found[1]!, Number(found[2]), Number(found[3]), message.slice(start, at));
  }
  return true;
}
