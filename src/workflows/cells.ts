import type { Ending, Signal, StartMessage } from "./worker/messages.ts";

/** Which code an instance runs: fixed when it is created. */
export interface Code {
  accountId: string;
  scriptName: string;
  scriptVersion: string;
  className: string;
}

/** How a segment runs: `alone` when cells have died under its instance, where it can harm no other. */
export type Manner = "shared" | "alone";

/** Where segments run. Each has a number that is never used again: what a segment of another number says is void. */
export interface Cells {
  run(segment: number, code: Code, start: StartMessage, manner: Manner): void;
  /** Brings a segment to where it will run, for an instance that is to come: no workflow runs until it begins. */
  standBy(segment: number, code: Code): void;
  /** Whether it still stands by: its cell may have died. */
  standsBy(segment: number): boolean;
  /** Lets a segment begin that stands by; false when it cannot, and then it never will. */
  begin(segment: number, start: StartMessage): boolean;
  answer(segment: number, call: number, answer: string): void;
  signal(segment: number, signal: Signal): void;
}

/** What cells tell the engine. */
export interface CellListener {
  call(segment: number, call: number, message: string): void;
  note(segment: number, message: string): void;
  ended(segment: number, ending: Ending): void;
  /** The cell died. `isSuspect` when the segment may have been the cause. */
  lost(segment: number, isSuspect: boolean): void;
}
