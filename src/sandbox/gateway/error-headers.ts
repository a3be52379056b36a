import { cellHeaders } from "../protocol.ts";
import { errorLengths } from "../worker/thrown.ts";

/** An error that a fetch or a call of a binding throws in a script. */
export interface ScriptError {
  message: string;
  name?: string;
  code?: number;
  /** Properties that are true on the error: retryable, overloaded. */
  flags?: readonly string[];
}

/** Headers of an answer, as names and values in turn, that make the wrapper in the script throw (worker/run.ts). */
export function errorHeaders({ message, name, code, flags }: ScriptError): string[] {
  return [
    cellHeaders.error,
    encode(message, errorLengths.message),
    ...(name === undefined ? [] : [cellHeaders.errorName, encode(name, errorLengths.name)]),
    ...(code === undefined ? [] : [cellHeaders.errorCode, String(code)]),
    ...(flags === undefined ? [] : [cellHeaders.errorFlags, flags.join(",")]),
  ];
}

/**
 * Makes text well-formed first, because `encodeURIComponent` throws otherwise. A character takes up to nine
 * bytes, and workerd reads at most 128 KiB of headers.
 */
const encode = (text: string, charactersMax: number): string =>
  encodeURIComponent(text.slice(0, charactersMax).toWellFormed());
