import { responseHead } from "../../platform/util/raw-http.ts";
import { errorHeaders, type ScriptError } from "../../sandbox/gateway/error-headers.ts";
import type { BindingOf } from "../bindings.ts";

/** The outbound script of a dispatch namespace, which handles customers' fetches, with its parameters. */
export interface OutboundScript {
  service: string;
  entrypoint: string | undefined;
  params: Readonly<Record<string, unknown>>;
}

/** The answer to an upgrade that makes the script throw. */
export const refusedUpgrade = (error: ScriptError): string =>
  responseHead(403, "Forbidden", [...errorHeaders(error), "connection", "close", "content-length", "0"]);

/**
 * The name of an entrypoint in the script's entry module: `Entry` handles requests and events, `Rpc` method
 * calls.
 */
export const entrypointName = (entrypoint: string | undefined, kind: "Entry" | "Rpc" = "Entry"): string =>
  entrypoint === undefined || entrypoint === "default" ? kind : `${kind}:${entrypoint}`;

/** The outbound script of a dispatch. The binding's wrapper has checked the parameters. */
export function outboundOf(
  { outbound }: BindingOf<"dispatch_namespace">,
  params: Readonly<Record<string, unknown>> = {},
): OutboundScript | undefined {
  if (outbound === undefined) return undefined;
  return { service: outbound.worker.service, entrypoint: outbound.worker.entrypoint, params };
}
