import { parseBounded } from "../../platform/util/bounded-json.ts";
import { MalformedError } from "./cell-messages.ts";
import type { Head } from "./channel-response.ts";
import { headerBytesMax } from "./exchange.ts";
import { protocolLimits } from "../settings.ts";

/*
 * Parses the messages of a snippet's channel. A snippet may have taken over its end of the channel, so a
 * message that worker/channel.ts would not send is a MalformedError.
 */

/** A fetch of the snippet. Each character of the headers is one byte, as in the request. */
export interface ChannelFetch {
  id: number;
  method: string;
  url: string;
  headers: string[];
}

const urlLengthMax = 32 * 1024;
const methodPattern = /^(?!CONNECT$)[A-Z-]{1,32}$/i;

export const isAscii = (text: string): boolean => /^[\t\x20-\x7e]*$/.test(text);

/**
 * Splits a message into its JSON and the body of an answer. A binary message begins with the length of the
 * JSON in four bytes; a text message has no body.
 */
export function openMessage(
  data: Buffer,
  isBinary: boolean,
): { message: Record<string, unknown>; body: Buffer | undefined } {
  const start = isBinary ? 4 : 0;
  const length = !isBinary ? data.length : data.length < start ? Infinity : data.readUInt32BE(0);
  if (length > protocolLimits.channelHeadLength || start + length > data.length)
    throw new MalformedError("The message is too long, or shorter than its declared length.");
  let message: unknown;
  try {
    message = parseBounded(data.toString("utf8", start, start + length));
  } catch {
    // malformed
  }
  if (typeof message !== "object" || message === null)
    throw new MalformedError("Expected a JSON object for the message.");
  return {
    message: message as Record<string, unknown>,
    body: isBinary ? data.subarray(start + length) : undefined,
  };
}

export function readFetch(message: Record<string, unknown>): ChannelFetch {
  const { id, method, url, headers } = message;
  if (typeof id !== "number" || !Number.isSafeInteger(id))
    throw new MalformedError("Expected a number for the id of the fetch.");
  if (typeof method !== "string" || !methodPattern.test(method))
    throw new MalformedError("The method of the fetch cannot be sent.");
  if (typeof url !== "string" || url.length > urlLengthMax)
    throw new MalformedError(`Expected a URL of at most ${urlLengthMax} characters.`);
  return { id, method, url, headers: readHeaders(headers, "request") };
}

/** Parses the head of an answer. */
export function readHead(message: Record<string, unknown>): Head {
  const { status, statusText, headers } = message;
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599)
    throw new MalformedError("Expected a status from 200 to 599.");
  if (typeof statusText !== "string") throw new MalformedError("The answer has no status text.");
  return { status: status as number, statusText, headers: readHeaders(headers, "response") };
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const control = /[\x00-\x08\x0a-\x1f\x7f]/;

/** A snippet sets headers as text; they are sent as UTF-8. */
function onWire(text: string): string {
  if (control.test(text)) throw new MalformedError("A header has a character that cannot be sent.");
  return Buffer.from(text).toString("latin1");
}

/** Validates a list from `JSON.parse` and encodes it in place: a copy of each would cost 1 KB a request. */
function readHeaders(given: unknown, what: string): string[] {
  if (!Array.isArray(given) || given.length % 2 !== 0)
    throw new MalformedError(`The headers of the ${what} are not a list of names and values.`);
  let length = 0;
  for (let i = 0; i < given.length; i++) {
    const each: unknown = given[i];
    if (typeof each !== "string") throw new MalformedError(`The ${what} has a header that is not text.`);
    length += each.length;
    if (!isAscii(each)) given[i] = onWire(each);
  }
  if (length > headerBytesMax)
    throw new MalformedError(`The ${what} has more than ${headerBytesMax / 1024} KiB of headers.`);
  return given as string[];
}
