import { VisitorError } from "../edge/http/errors.ts";
import { DomainError } from "../platform/domain-error.ts";
import { FailedCall } from "../platform/process-calls/call-messages.ts";
import { DatabaseUnavailable, isUnavailable } from "../platform/storage/faults.ts";
import { CellError, ObjectRefusal, Refusal, type CellErrorKind } from "../sandbox/errors.ts";
import type { Thrown } from "../sandbox/gateway/exchange.ts";

/** An error in the form in which one process sends it to another. */
type Failure =
  | { of: "refusal"; message: string }
  | { of: "object"; message: string; flags: ObjectRefusal["flags"] }
  | { of: "cell"; kind: CellErrorKind; message: string; thrown: Thrown | undefined }
  | { of: "domain"; kind: string; message: string }
  | { of: "unavailable" }
  | { of: "visitor"; status: number; code: number; title: string; message: string };

/** Awaits work for another process. Converts its errors to a FailedCall, which that process turns back (`understood`). */
export async function failing<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const failure = failureOf(error);
    throw failure === undefined ? error : new FailedCall(failure);
  }
}

/** Awaits a call of another process, and rejects with the error of the work there. */
export async function understood<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw error instanceof FailedCall ? errorOf(error.details as Failure | Record<string, never>) : error;
  }
}

/** Whether an error is one that callers in another process get as it is. Others are faults, which only the log shows. */
export const isForCallers = (error: unknown): boolean => failureOf(error) !== undefined;

function failureOf(error: unknown): Failure | undefined {
  if (error instanceof ObjectRefusal) return { of: "object", message: error.message, flags: error.flags };
  if (error instanceof Refusal) return { of: "refusal", message: error.message };
  if (error instanceof CellError) {
    const { kind, message, cause } = error;
    return { of: "cell", kind, message, thrown: kind === "exception" ? (cause as Thrown) : undefined };
  }
  if (error instanceof DomainError) return { of: "domain", kind: error.kind, message: error.message };
  if (isUnavailable(error)) return { of: "unavailable" };
  if (!(error instanceof VisitorError)) return undefined;
  const { status, code, title, message } = error;
  return { of: "visitor", status, code, title, message };
}

function errorOf(failure: Failure | Record<string, never>): Error {
  switch (failure.of) {
    case "refusal":
      return new Refusal(failure.message);
    case "object":
      return new ObjectRefusal(failure.message, ...failure.flags);
    case "cell":
      return new CellError(failure.kind, failure.message, { cause: failure.thrown });
    case "domain":
      return new DomainError(failure.kind, { message: failure.message });
    case "unavailable":
      return new DatabaseUnavailable(new Error("Another process could not use it"));
    case "visitor":
      return new VisitorError(failure.status, failure.code, failure.title, failure.message);
    default:
      return new Refusal("The platform failed to answer. See its log for the reason.");
  }
}
