/*
 * Calls of Durable Objects in the cell of their callers, without a request through the gateway. The gateway is asked once
 * whether a script may call an object and where the object is. The answer is cached for `grantMs`, or until the
 * configuration changes.
 */
import { Newest } from "../../platform/util/newest.ts";
import { cellHeaders, type LocalCall, type ObjectEvent, type ObjectGrant } from "../protocol.ts";
import { childHeaders } from "./dispatch.ts";
import { isLoaded, type SystemEnv } from "./loader.ts";

/** The calls of a run that the gateway has begun, and of all runs that they have begun here. */
interface Family {
  /** Number of calls after which one of the runs asks the gateway, which counts the calls. */
  lot: number;
  /** Calls since one of the runs last asked. */
  made: number;
}
/** A run that may call objects of this cell. */
interface Caller {
  script: string;
  generation: string;
  /** As in Family, for the run alone. */
  lot: number;
  made: number;
  family: Family;
  /** Number of further calls, one below the other, that may begin below the run. */
  depthLeft: number;
  /** JSON that the called objects see as `request.cf`. */
  visitor: string | undefined;
}
const callers = new Map<string, Caller>();

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

/** The calls in this cell that have begun runs, by the runs' tokens. The gateway asks when a run makes its first request. */
const runs = new Map<string, LocalCall>();
/**
 * Runs that have ended: work that they left running may make requests. An object may be called many thousand times a
 * second. This number of runs takes about 20 MB.
 */
const lateRuns = new Newest<LocalCall>(50_000);

/** `calls` is RunMetadata.calls. */
export function beginCaller(run: string, script: string, calls: string, visitor: string | undefined): void {
  const [generation = "", lotText, depth] = calls.split(" ");
  const [lot, depthLeft] = [Number(lotText), Number(depth)];
  callers.set(run, { script, generation, lot, made: 0, family: { lot, made: 0 }, depthLeft, visitor });
}

/** Lets a run that a call has begun here call objects, too, unless it is too deep: then the gateway refuses. */
function beginBelow(run: string, parent: Caller, { script, lot }: ObjectGrant): void {
  const { generation, family, visitor } = parent;
  const depthLeft = parent.depthLeft - 1;
  if (depthLeft > 0) callers.set(run, { script, generation, lot, made: 0, family, depthLeft, visitor });
}

export const endCaller = (run: string): boolean => callers.delete(run);

/** The call that began a run; undefined for a run that the gateway has begun. */
export const localCallOf = (run: string): LocalCall | undefined => runs.get(run) ?? lateRuns.get(run);

/** Forgets that objects of a namespace may be called. */
export function forgetGrants(namespace: string): void {
  resets++;
  for (const [key, { grant }] of grants) if (grant?.object.namespace === namespace) grants.delete(key);
}

/** The object of a call, if the run may call it now without asking. Counts nothing. */
export function currentGrant({ run, binding, reference }: LocalCall): ObjectGrant | undefined {
  const caller = callers.get(run);
  const known = grants.get(`${caller?.script} ${binding} ${reference}`);
  return caller !== undefined && isCurrent(known, caller) ? known.grant : undefined;
}

/** The script of a run that may call objects. */
export const scriptOf = (run: string): string | undefined => callers.get(run)?.script;

const isCurrent = (known: CachedGrant | undefined, { generation }: Caller): known is CachedGrant =>
  known !== undefined && known.generation === generation && Date.now() - known.askedAt < grantMs;

/** The object of a call, if it may be called here. Rejects with the gateway's refusal of a further call. */
export async function grantOf(call: LocalCall, env: SystemEnv): Promise<ObjectGrant | undefined> {
  const caller = callers.get(call.run);
  if (caller === undefined) return undefined;
  const key = `${caller.script} ${call.binding} ${call.reference}`;
  const known = grants.get(key);
  const { generation, family } = caller;
  if (isCurrent(known, caller)) {
    const { grant } = known;
    if (grant === undefined) return undefined;
    if (caller.made < caller.lot && family.made < family.lot && isLoaded(grant.script)) {
      caller.made++;
      family.made++;
      return grant;
    }
  }
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
  const token = `local.${crypto.randomUUID()}`;
  const { script, object } = grant;
  runs.set(token, call);
  unreported++;
  const caller = callers.get(call.run);
  if (caller !== undefined) beginBelow(token, caller, grant);
  try {
    const visitor = caller?.visitor;
    return await use({ script, object, run: token, ...(visitor !== undefined && { visitor }) });
  } finally {
    runs.delete(token);
    callers.delete(token);
    lateRuns.add(token, call);
  }
}

/** The error of a refusal: JSON with a message and the flags of the error. */
export async function refusal(response: Response): Promise<Error> {
  const { message, flags = [] } = await response.json<{ message: string; flags?: string[] }>();
  if (message === "") throw new Error("The gateway gave no reason for the refusal.");
  return Object.assign(new Error(message), Object.fromEntries(flags.map((flag) => [flag, true])));
}
