import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import type { Account } from "../accounts/accounts.ts";
import type { Actor } from "../access/actor.ts";
import type { PermissionKey } from "../access/permissions.ts";
import type { Zone } from "../zones/zone.ts";
import type { ApiMessage, Page, PreparedJson } from "./envelope.ts";
import type { ErrorCodes } from "./errors.ts";

/** The resource of the permission: the zone or account in the path, or the caller's own user. */
export type Access =
  | { scope: "zone" | "account"; permission: PermissionKey }
  | { scope: "user"; permission: PermissionKey }
  /** Any valid credentials. The operation filters its result by the caller's permissions. */
  | { scope: "caller" }
  /**
   * The operation authenticates its caller itself, for example with a token that it issued. Its call has no
   * actor.
   */
  | { scope: "own" };

export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

interface Common {
  /** Name in openapi.json and in the log. */
  id: string;
  method: HttpMethod;
  /** As in the specification. paths.ts maps other spellings of the path to it. */
  path: string;
  summary: string;
  access: Access;
  /** Limit on the bytes of the body, instead of the general limit. */
  bodyBytesMax?: number;
  /** Accept any Content-Type, because some clients send a wrong one. */
  acceptAnyContentType?: boolean;
  status?: number;
  /** The result has a secret, so that its length must not depend on its content: it is not compressed. */
  answersSecret?: boolean;
  /** The change takes the header If-Match. The handler checks it with `expected` in its transaction. */
  takesIfMatch?: boolean;
  /** The operation always fails: clients call it, and its error names the feature that this installation lacks. */
  isRefusal?: boolean;
  /**
   * Every operation but GET leaves an entry in the audit log, in its first transaction. "ahead" writes the entry before the
   * handler runs, for changes outside the database. "none" leaves no entry: the operation changes nothing, or moves
   * customers' messages.
   */
  audit?: "none" | "ahead";
  /** The audit log does not show the resource before the change, because reading it costs much. */
  hidesBefore?: boolean;
  /**
   * The schema of the resource that the handler sets as `before` of its call, inside its transaction. Without it, the audit
   * log reads the resource just before the call, with the GET operation of the same path.
   */
  before?: z.ZodType;
}

/** A call of an operation. `S` is the services that the operation uses: those of its capability. */
export interface Call<Q, B, S> {
  params: Record<string, string>;
  query: Q;
  body: B;
  actor: Actor;
  services: S;
  /** Present if the path names a zone. `account` is then the zone's account. */
  zone: Zone;
  account: Account;
  incoming: IncomingMessage;
  requestId: string;
  clientIp: string;
  /** Informational messages for the envelope. */
  messages: ApiMessage[];
  /** The resource before the change, for the audit log. See `before` of the operation. */
  before?: unknown;
  /** The tag of the resource's state, for the header ETag. */
  etag?: string;
  /** `result_info` of the envelope, for results that contain a list. */
  resultInfo?: Record<string, unknown>;
}

/**
 * How the body of a call is read. For `form`, the text fields are read and validated. For `own`, the handler
 * reads the body from the request itself (files, streams), and the schema is only documentation.
 */
export type BodyKind = "json" | "form" | "own";

/** An operation that uses the services `S`. `Operation` without an argument is any operation. */
export interface Operation<S = never> extends Common {
  query: z.ZodObject | undefined;
  body: z.ZodType | undefined;
  bodyKind: BodyKind;
  bodyOptional: boolean;
  /** Whether a call with this body and query only looks, so that it leaves no entry in the audit log. */
  isDry?: (body: never, query: never) => boolean;
  /** Whether a call with this body only reads, although its method is that of a change: a live log, SQL that selects. */
  isView?: true | ((body: never) => boolean);
  answer: "result" | "page" | "raw";
  result: z.ZodType | undefined;
  /** The codes of the errors of its domain. */
  errorCodes: ErrorCodes;
  /** A property, not a method, so that the compiler checks that the capability has the services. */
  handle: (call: Call<never, never, S>) => Promise<unknown>;
}

type Out<T> = T extends z.ZodType ? z.output<T> : undefined;
type Schema = z.ZodType | undefined;
type Fields = z.ZodObject | undefined;

interface Declared<Q, B> extends Common {
  query?: Q;
  body?: B;
  bodyKind?: BodyKind;
  bodyOptional?: boolean;
  isDry?: (body: Out<B>, query: Out<Q>) => boolean;
  isView?: true | ((body: B extends z.ZodType ? z.output<B> : undefined) => boolean);
}

/**
 * The functions that declare operations which use the services `S`. The API maps the errors in `errorCodes` in
 * every operation.
 */
export function operationsFor<S extends object>(errorCodes: ErrorCodes = {}) {
  return {
    /** Declares an operation that returns one result. */
    operation: <R extends z.ZodType, Q extends Fields = undefined, B extends Schema = undefined>(
      declared: Declared<Q, B> & {
        result: R;
        handle(call: Call<Out<Q>, Out<B>, S>): Promise<z.input<R> | PreparedJson>;
      },
    ): Operation<S> => complete(declared, "result", errorCodes),

    /** Declares an operation that returns a page of results. */
    listOperation: <R extends z.ZodType, Q extends Fields = undefined>(
      declared: Declared<Q, undefined> & {
        result: R;
        handle(call: Call<Out<Q>, undefined, S>): Promise<Page<z.input<R>>>;
      },
    ): Operation<S> => complete(declared, "page", errorCodes),

    /** Declares an operation that returns a response without the envelope. */
    rawOperation: <Q extends Fields = undefined, B extends Schema = undefined>(
      declared: Declared<Q, B> & { handle(call: Call<Out<Q>, Out<B>, S>): Promise<Response> },
    ): Operation<S> => complete(declared, "raw", errorCodes),
  };
}

function complete<S>(declared: object, answer: Operation["answer"], errorCodes: ErrorCodes): Operation<S> {
  return {
    query: undefined,
    body: undefined,
    bodyKind: "json",
    bodyOptional: false,
    result: undefined,
    ...declared,
    answer,
    errorCodes,
  } as unknown as Operation<S>;
}
