import type { Ending, Signal } from "./worker/messages.ts";

/** Which code an instance runs: fixed when it is created. */
export interface Code {
  accountId: string;
  scriptName: string;
  scriptVersion: string;
  className: string;
}

/** Where segments run. Each has a number that is never used again: what a segment of another number says is void. */
export interface Cells {
  /** `isAlone` for one under which cells have died: it runs where it can harm no other. */
  run(segment: number, code: Code, start: string, isAlone: boolean): void;
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
