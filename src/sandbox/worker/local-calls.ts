/*
 * Calls of Durable Objects in the cell of their callers, without a request through the gateway. The gateway is asked once
 * whether a script may call an object and where the object is. The answer is cached for `grantMs`, or until the
 * configuration changes.
 */
import { cellHeaders, type LocalCall, type ObjectEvent, type ObjectGrant } from "../protocol.ts";
import { childHeaders } from "./dispatch.ts";
import { isLoaded, type SystemEnv } from "./loader.ts";
import { addRun, endRun, runOf, type CallingRun, type LocalRun } from "../objects/worker/local-runs.ts";

/** Runs in progress that the gateway has begun. */
const callers = new Map<string, CallingRun>();

interface CachedGrant {
  /** Undefined for an object that has to be called through the gateway. */
  grant: ObjectGrant | undefined;
  generation: string;
  askedAt: number;
}
/** By caller's script, binding and object. */
const grants = new Map<string, CachedGrant>();
const grantsMax = 20_000;
/** workerd ends an object after ten seconds without calls: the gateway has to know of each one that starts. */
const grantMs = 8000;
/** Number of orders to end objects. An answer that was requested before such an order is not used. */
let resets = 0;

/** Calls in this cell that were not reported to the gateway yet. */
let unreported = 0;

/** `calls` is RunMetadata.calls. */
export function beginCaller(run: string, script: string, calls: string, visitor: string | undefined): void {
  const [generation = "", lotText, depth] = calls.split(" ");
  const [lot, depthLeft] = [Number(lotText), Number(depth)];
  callers.set(run, { script, generation, lot, made: 0, family: { lot, made: 0 }, depthLeft, visitor });
}

/** Lets a run that a call has begun here call objects, too, unless it is too deep: then the gateway refuses. */
function below(parent: CallingRun, { script, lot }: ObjectGrant): CallingRun | undefined {
  const { generation, family, visitor } = parent;
  const depthLeft = parent.depthLeft - 1;
  return depthLeft > 0 ? { script, generation, lot, made: 0, family, depthLeft, visitor } : undefined;
}

const callerOf = (run: string): CallingRun | undefined => callers.get(run) ?? runOf(run)?.caller;

export const endCaller = (run: string): boolean => callers.delete(run);

/** The call that began a run; undefined for a run that the gateway has begun. */
export const localCallOf = (run: string): LocalCall | undefined => runOf(run)?.call;

/** Forgets that objects of a namespace may be called. */
export function forgetGrants(namespace: string): void {
  resets++;
  for (const [key, { grant }] of grants) if (grant?.object.namespace === namespace) grants.delete(key);
}

/** The object of a call, if the run may call it now without asking. Counts nothing. */
export function currentGrant(call: LocalCall): ObjectGrant | undefined {
  const caller = callerOf(call.run);
  const known = caller && grants.get(keyOf(call, caller));
  return caller !== undefined && isCurrent(known, caller) ? known.grant : undefined;
}

/** The script of a run that may call objects. */
export const scriptOf = (run: string): string | undefined => callerOf(run)?.script;

const keyOf = ({ binding, reference }: LocalCall, { script }: CallingRun): string =>
  `${script} ${binding} ${reference}`;

const isCurrent = (known: CachedGrant | undefined, { generation }: CallingRun): known is CachedGrant =>
  known !== undefined && known.generation === generation && Date.now() - known.askedAt < grantMs;

/** The object of a call that may be made here now without asking. Counts the call. */
export function takeGrant(call: LocalCall): ObjectGrant | undefined {
  const caller = callerOf(call.run);
  const known = caller && grants.get(keyOf(call, caller));
  if (caller === undefined || !isCurrent(known, caller)) return undefined;
  const { grant } = known;
  const { family } = caller;
  if (grant === undefined || caller.made >= caller.lot || family.made >= family.lot) return undefined;
  if (!isLoaded(grant.script)) return undefined;
  caller.made++;
  family.made++;
  return grant;
}

/**
 * The object of a call for which `takeGrant` had none, if it may be called here. Rejects with the gateway's refusal of a
 * further call.
 */
export async function askGrant(call: LocalCall, env: SystemEnv): Promise<ObjectGrant | undefined> {
  const caller = callerOf(call.run);
  if (caller === undefined) return undefined;
  const key = keyOf(call, caller);
  const known = grants.get(key);
  const { generation, family } = caller;
  if (isCurrent(known, caller) && known.grant === undefined) return undefined;
  const made = { ofRun: caller.made, ofFamily: family.made };
  caller.made = family.made = 0;
  const [before, askedAt] = [resets, Date.now()];
  const grant = await ask(call, made, env).catch((error: unknown) => {
    caller.lot = family.lot = 0; // the calls may be used up, so each further call asks the gateway
    throw error;
  });
  if (resets !== before) return undefined;
  if (grants.size >= grantsMax) grants.clear();
  grants.set(key, { grant, generation, askedAt });
  return grant;
}

async function ask(
  { run, binding, reference }: LocalCall,
  { ofRun, ofFamily }: { ofRun: number; ofFamily: number },
  env: SystemEnv,
): Promise<ObjectGrant | undefined> {
  const all = unreported;
  unreported = 0;
  const counts = `made=${ofRun}&family=${ofFamily}&all=${all}`;
  const response = await env.GATEWAY.fetch(`http://gateway/object-grant?${counts}`, {
    headers: {
      [cellHeaders.control]: env.SECRET,
      [cellHeaders.run]: run,
      [cellHeaders.binding]: encodeURIComponent(binding),
      [cellHeaders.object]: encodeURIComponent(reference),
      ...childHeaders(run, env),
    },
  });
  if (!response.ok) throw await refusal(response);
  return (await response.json<ObjectGrant | null>()) ?? undefined;
}

/** Begins a run for a call, and ends it when the result has settled. */
export async function runLocally<T>(
  call: LocalCall,
  grant: ObjectGrant,
  use: (event: ObjectEvent) => Promise<T>,
): Promise<T> {
  const caller = callerOf(call.run);
  const run = addRun(call, caller && below(caller, grant));
  unreported++;
  try {
    return await use(eventOf(run, grant, caller?.visitor));
  } finally {
    endRun(run);
  }
}

const eventOf = (
  { token: run }: LocalRun,
  { script, object }: ObjectGrant,
  visitor: string | undefined,
): ObjectEvent => (visitor === undefined ? { script, object, run } : { script, object, run, visitor });

/** The error of a refusal: JSON with a message and the flags of the error. */
export async function refusal(response: Response): Promise<Error> {
  const { message, flags = [] } = await response.json<{ message: string; flags?: string[] }>();
  if (message === "") throw new Error("The gateway gave no reason for the refusal.");
  return Object.assign(new Error(message), Object.fromEntries(flags.map((flag) => [flag, true])));
}
