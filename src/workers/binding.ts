import type { IncomingMessage, ServerResponse } from "node:http";
import { errorHeaders, type ScriptError } from "../sandbox/gateway/error-headers.ts";
import type { Span } from "../platform/tracing/spans/span.ts";
import type { Binding, BindingOf } from "./bindings.ts";

/** The script that makes a request. Derived from the token of the run, never from the request itself. */
export interface Caller {
  accountId: string;
  scriptId: string;
  scriptName: string;
  versionId: string;
}

/**
 * A request of a script through one of its bindings. The worker side (`<capability>/worker/binding.ts`) runs
 * among the script's own code, so `url` and `request` are hostile input; `caller` and `binding` can be
 * trusted.
 */
export interface BindingCall<Type extends Binding["type"]> {
  caller: Caller;
  binding: BindingOf<Type>;
  /** Path and query. */
  url: URL;
  request: IncomingMessage;
  response: ServerResponse;
  /** The span of the call; undefined without traces. */
  span?: Span | undefined;
}

/** Answers a call of a binding. The run and its binding are verified; the request itself is hostile input. */
export type BindingHandler<Type extends Binding["type"]> = (call: BindingCall<Type>) => Promise<void>;

/** Makes the call in the script throw this error. */
export function throwInScript(response: ServerResponse, error: ScriptError): void {
  response.writeHead(500, [...errorHeaders(error), "content-length", "0"]).end();
}
