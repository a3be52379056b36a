import type { IncomingMessage, ServerResponse } from "node:http";
import type { Binding, BindingOf } from "../scripts/bindings.ts";

/** Which script asks: known from the run that the request belongs to, never from the request. */
export interface Caller {
  accountId: string;
  scriptId: string;
  scriptName: string;
  versionId: string;
}

/**
 * What a script asks of the platform through one of its bindings. Its worker side (`<capability>/worker/binding.ts`) runs among
 * the script's own code, so the request is as hostile as any; the caller and the binding are not.
 */
export interface BindingCall<Type extends Binding["type"]> {
  caller: Caller;
  binding: BindingOf<Type>;
  /** Path and query. */
  url: URL;
  request: IncomingMessage;
  response: ServerResponse;
}

export type BindingHandler<Type extends Binding["type"]> = (call: BindingCall<Type>) => Promise<void>;

/** Makes the call of the worker side throw an error of this message, and code. */
export function throwInScript(
  response: ServerResponse,
  error: { message: string; name?: string; code?: number },
): void {
  const headers: Record<string, string | number> = {
    "x-selvedge-error": encodeURIComponent(error.message),
    "content-length": 0,
  };
  if (error.name !== undefined) headers["x-selvedge-error-name"] = error.name;
  if (error.code !== undefined) headers["x-selvedge-error-code"] = error.code;
  response.writeHead(500, headers).end();
}
