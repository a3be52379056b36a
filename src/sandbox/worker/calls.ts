/* Admission of calls between scripts in this cell, which do not go through the gateway. */
import { waitUntil } from "cloudflare:workers";
import { RunAdmission, type ScriptSlots } from "../limits/admission.ts";
import type { SystemEnv } from "./loader.ts";

/** The part of an account's slots that the gateway gives to one script, and so to one dispatcher. */
const dispatcherShare = 3 / 4;

let dispatches: RunAdmission | undefined;
let methods: RunAdmission | undefined;

/**
 * Takes a slot for a dispatch. A customer gets at most as many slots as it leaves free for its account's
 * other customers.
 */
export function beginDispatch(account: string, script: string, env: SystemEnv): ScriptSlots {
  dispatches ??= admissionOf(env, dispatcherShare, 1);
  return begin(dispatches, account, script);
}
export const endDispatch = (share: ScriptSlots): void => dispatches!.leave(share);

/** Takes a slot for a call of another script's method. */
export function beginMethod(account: string, script: string, env: SystemEnv): ScriptSlots {
  methods ??= admissionOf(env, 1, 3);
  return begin(methods, account, script);
}
export const endMethod = (share: ScriptSlots): void => methods!.leave(share);

/**
 * Lets work go on when its caller leaves, so that what it has counted is counted down at its end: of a call that was
 * broken off, workerd continues no code, not even in `finally`.
 */
export function untilEnd<T>(work: Promise<T>): Promise<T> {
  waitUntil(work.catch(() => {}));
  return work;
}

function begin(admission: RunAdmission, account: string, script: string): ScriptSlots {
  const share = admission.of(account, script, "request");
  if (!admission.enter(share)) throw new Error("Worker has too many requests to handle.");
  return share;
}

function admissionOf(
  { CALLS_MAX, ACCOUNT_CALLS_MAX }: SystemEnv,
  accountPart: number,
  scriptShare: number,
): RunAdmission {
  const accountMax = Math.max(1, Math.floor(Number(ACCOUNT_CALLS_MAX) * accountPart));
  // Calls never wait here.
  return new RunAdmission({ capacity: Number(CALLS_MAX), accountMax, scriptShare, waitMs: 0, patienceMs: 0 });
}
