import { z } from "zod";
import { ApiErrors, type ApiError } from "./errors.ts";

/** An entry of `errors` or `messages` in an answer of the API. */
export interface ApiMessage {
  code: number;
  message: string;
}

/** One page of a list. `totalCount` counts all matches, not only those on this page. */
export interface Page<T> {
  items: T[];
  page: number;
  perPage: number;
  totalCount: number;
}

export const ResultInfoSchema = z
  .object({
    page: z.int(),
    per_page: z.int(),
    count: z.int(),
    total_count: z.int(),
    total_pages: z.int(),
  })
  .meta({ id: "ResultInfo" });

export const ErrorSchema = z
  .object({
    code: z.int(),
    message: z.string(),
    source: z.object({ pointer: z.string() }).optional(),
    error_chain: z.array(z.object({ code: z.int(), message: z.string() })).optional(),
    meta: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "Error" });

/** The envelope of a result: `success`, `errors`, `messages`, `result` and, for lists, `result_info`. */
export function success(
  result: unknown,
  messages: readonly ApiMessage[] = [],
  resultInfo?: Record<string, unknown>,
): object {
  return {
    result,
    success: true,
    errors: [],
    messages,
    ...(resultInfo === undefined ? {} : { result_info: resultInfo }),
  };
}

/**
 * A result that is JSON already. It is sent without being parsed, because parsing a large one would block all other
 * requests for up to a second.
 */
export class PreparedJson {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get value(): unknown {
    return JSON.parse(Buffer.from(this.bytes).toString());
  }
}

/** The text of `success` for a prepared result. */
export function preparedSuccess(
  { bytes }: PreparedJson,
  messages: readonly ApiMessage[] = [],
): Uint8Array<ArrayBuffer> {
  const without = JSON.stringify(success(null, messages));
  return Buffer.concat([
    Buffer.from('{"result":'),
    bytes,
    Buffer.from(without.slice('{"result":null'.length)),
  ]);
}

/** The envelope of one page of a list, with `result_info`. */
export function successPage(page: Page<unknown>, messages: readonly ApiMessage[] = []): object {
  return {
    result: page.items,
    success: true,
    errors: [],
    messages,
    result_info: {
      page: page.page,
      per_page: page.perPage,
      count: page.items.length,
      total_count: page.totalCount,
      total_pages: Math.ceil(page.totalCount / page.perPage),
    },
  };
}

/** The response to a failed call, in the envelope. */
export function failure(error: ApiError | ApiErrors, requestId: string): Response {
  const errors = error instanceof ApiErrors ? error.errors : [error];
  const first = errors[0];
  const headers: Record<string, string> = { "content-type": "application/json", "x-request-id": requestId };
  if (first?.retryAfterSeconds !== undefined) headers["retry-after"] = String(first.retryAfterSeconds);
  // The official clients retry 409 and 5xx. Retrying a 409 of this API cannot succeed.
  if (first?.status === 409) headers["x-should-retry"] = "false";
  if (first?.status === 401) headers["www-authenticate"] = "Bearer";
  const body = {
    result: null,
    success: false,
    errors: errors.map((e) => ({
      code: e.code,
      message: e.message,
      ...(e.pointer === undefined ? {} : { source: { pointer: e.pointer } }),
      ...(e.chain.length === 0 ? {} : { error_chain: e.chain }),
      ...(e.meta === undefined ? {} : { meta: e.meta }),
    })),
    messages: [],
  };
  return new Response(JSON.stringify(body), { status: first?.status ?? 500, headers });
}
