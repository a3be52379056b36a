import type { Caller } from "../binding.ts";
import type { OutboundScript } from "./run-parts.ts";
import type { RunRoot } from "./run-root.ts";
import type { LoadedScript } from "./script-cache.ts";

export interface RunLimits {
  cpuMs: number;
  subRequests: number;
}

/** A version of a script, and what a run of it has from its caller. */
export interface RunContext {
  loaded: LoadedScript;
  caller: Caller;
  limits: RunLimits;
  outbound: OutboundScript | undefined;
  root: RunRoot;
  /** Number of scripts that have called each other up to this run. */
  depth: number;
}

/** The script that a request of a run goes to. */
export interface CallTarget {
  context: RunContext;
  entrypoint: string | undefined;
  /** Added to its `env` for this request. */
  params: Readonly<Record<string, unknown>> | undefined;
  /** Whether the script sees `request.cf` of the visitor. */
  seesCf: boolean;
}
