import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import type { Account } from "../accounts/accounts.ts";
import type { Services } from "../services.ts";
import type { Actor } from "../tokens/actor.ts";
import type { PermissionKey } from "../tokens/permissions.ts";
import type { Zone } from "../zones/zone.ts";
import type { Message, Page } from "./envelope.ts";

/** What a path is about decides whose permission counts: the zone in it, the account in it, or the caller's own user. */
export type Access =
  | { scope: "zone" | "account"; permission: PermissionKey }
  | { scope: "user"; permission: PermissionKey }
  /** Any valid credentials; the operation itself shows only what they may see. */
  | { scope: "caller" }
  /** The operation checks by itself who calls, for example by a token that it gave out. Its call has no actor. */
  | { scope: "own" };

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

interface Common {
  /** Name in openapi.json and in the log. */
  id: string;
  method: Method;
  /** As in the specification; other spellings of the same path are folded into it by paths.ts. */
  path: string;
  summary: string;
  access: Access;
  /** Bytes of body that are read at most, when the general limit does not fit. */
  bodyBytesMax?: number;
  /** The bodies of these clients carry another content type than the declared one. */
  acceptAnyContentType?: boolean;
  status?: number;
}

export interface Call<Q, B> {
  params: Record<string, string>;
  query: Q;
  body: B;
  actor: Actor;
  services: Services;
  /** Present when the path names one (for a zone path, the zone's account). */
  zone: Zone;
  account: Account;
  incoming: IncomingMessage;
  requestId: string;
  clientIp: string;
  /** Informational messages for the envelope. */
  messages: Message[];
  /** For the envelope, where a list is a part of the result. */
  resultInfo?: Record<string, number | string>;
}

/**
 * Where the body of a call comes from. A form's text fields are read and validated; an `own` body is a form that the handler
 * reads from the request itself (files, streams), and its schema is for the documentation.
 */
export type BodyKind = "json" | "form" | "own";

export interface Operation extends Common {
  query: z.ZodObject | undefined;
  body: z.ZodType | undefined;
  bodyKind: BodyKind;
  bodyOptional: boolean;
  answer: "result" | "page" | "raw";
  result: z.ZodType | undefined;
  handle(call: Call<never, never>): Promise<unknown>;
}

type Out<T> = T extends z.ZodType ? z.output<T> : undefined;

interface Declared<Q, B> extends Common {
  query?: Q;
  body?: B;
  bodyKind?: BodyKind;
  bodyOptional?: boolean;
}

/** Declares an operation that answers with one result. */
export function operation<
  R extends z.ZodType,
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(
  declared: Declared<Q, B> & { result: R; handle(call: Call<Out<Q>, Out<B>>): Promise<z.input<R>> },
): Operation {
  return complete(declared, "result");
}

/** Declares an operation that answers with a page of results. */
export function listOperation<R extends z.ZodType, Q extends z.ZodObject | undefined = undefined>(
  declared: Declared<Q, undefined> & {
    result: R;
    handle(call: Call<Out<Q>, undefined>): Promise<Page<z.input<R>>>;
  },
): Operation {
  return complete(declared, "page");
}

/** Declares an operation that answers without the envelope. */
export function rawOperation<
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(declared: Declared<Q, B> & { handle(call: Call<Out<Q>, Out<B>>): Promise<Response> }): Operation {
  return complete(declared, "raw");
}

function complete(declared: object, answer: Operation["answer"]): Operation {
  return {
    query: undefined,
    body: undefined,
    bodyKind: "json",
    bodyOptional: false,
    result: undefined,
    ...declared,
    answer,
  } as unknown as Operation;
}
