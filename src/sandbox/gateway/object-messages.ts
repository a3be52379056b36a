import type { IncomingHttpHeaders } from "node:http";
import { cellHeaders, type AlarmNotice, type BookmarkOrder } from "../protocol.ts";
import { readAlarmNotice } from "./alarm-messages.ts";
import { headerText, MalformedError, readObject } from "./cell-messages.ts";

/** A message of an object about itself: it changes its alarm, asks for a bookmark, or is about to start. */
export type ObjectMessage =
  | { kind: "alarm"; notice: AlarmNotice }
  | { kind: "bookmark"; order: BookmarkOrder }
  | { kind: "start" };

/** The message in the headers of a request; undefined for a fetch. Throws a MalformedError. */
export function objectMessageIn(headers: IncomingHttpHeaders): ObjectMessage | undefined {
  const { [cellHeaders.alarm]: alarm, [cellHeaders.bookmark]: bookmark } = headers;
  if (alarm !== undefined) return { kind: "alarm", notice: readAlarmNotice(headerText("the alarm", alarm)) };
  if (bookmark === undefined) return undefined;
  return { kind: "bookmark", order: readBookmarkOrder(headerText("the bookmark", bookmark)) };
}

const bookmarkLengthMax = 128;
/** The last time that a date of JavaScript can have. */
const msMax = 8.64e15;

function readBookmarkOrder(text: string): BookmarkOrder {
  const { of, ms, bookmark } = readObject(text, "the bookmark");
  if (of === "now") return { of };
  if (of === "time" && typeof ms === "number" && Math.abs(ms) <= msMax) return { of, ms };
  if (of === "restore" && typeof bookmark === "string" && bookmark.length <= bookmarkLengthMax)
    return { of, bookmark };
  throw new MalformedError("Expected a time or a bookmark.");
}
