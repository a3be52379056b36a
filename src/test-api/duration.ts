import { durationMsOf } from "../testkit/clock.ts";
import { TestFault } from "./test-fault.ts";

/** The milliseconds of a duration in a request. Throws a TestFault if it is none. */
export const givenDurationMs = (duration: string | number): number =>
  durationMsOf(duration, (message) => new TestFault(400, message));
