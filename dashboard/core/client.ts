/** One entry of `errors` in an answer. `source.pointer` names the field, as in "/body/content". */
export interface ApiMessage {
  code: number;
  message: string;
  source?: { pointer: string };
}

export interface ResultInfo {
  page?: number;
  per_page?: number;
  count?: number;
  total_count?: number;
  total_pages?: number;
  cursor?: string;
  cursors?: { after?: string };
}

/** The cursor of the next page; undefined at the end. Lists of the public API name it in two ways. */
export const nextCursor = ({ cursor, cursors }: ResultInfo): string | undefined =>
  cursors?.after || cursor || undefined;

/** An answer of the API without its envelope. */
export interface ApiResponse<T> {
  result: T;
  info: ResultInfo;
  messages: ApiMessage[];
  /** The tag of the state, as the header If-Match takes it. */
  etag: string | undefined;
}

/** The API refused a call, or could not be reached (`status` 0). */
export class ApiFailure extends Error {
  readonly status: number;
  readonly errors: readonly ApiMessage[];
  readonly requestId: string | undefined;

  constructor(status: number, errors: readonly ApiMessage[], requestId?: string) {
    super(errors.map(({ message }) => message).join("\n"));
    this.status = status;
    this.errors = errors;
    this.requestId = requestId;
  }

  get code(): number | undefined {
    return this.errors[0]?.code;
  }

  /** The error about one field of the body. */
  of(field: string): ApiMessage | undefined {
    const pointer = `/body/${field.replaceAll(".", "/")}`;
    return this.errors.find(({ source }) => source?.pointer === pointer);
  }
}

/** Converts any error of a call to an ApiFailure. */
export const asFailure = (error: unknown): ApiFailure =>
  error instanceof ApiFailure ? error : new ApiFailure(0, [{ code: 0, message: String(error) }]);

/** A call of the API: an operation of openapi.json with its values. */
export interface Call {
  /** Method and path as in openapi.json: "PATCH /zones/{zone_id}". */
  op: string;
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** JSON, or a form or text that is sent unchanged. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
}

/** The call, refused if the resource no longer has this tag. */
export const onlyAt = (etag: string | undefined, call: Call): Call =>
  etag === undefined ? call : { ...call, headers: { ...call.headers, "if-match": etag } };

export const methodOf = ({ op }: Pick<Call, "op">): string => op.slice(0, op.indexOf(" "));

/** The path of a call below /client/v4, with its query. */
export function pathOf({ op, params = {}, query = {} }: Call): string {
  const path = op
    .slice(op.indexOf(" ") + 1)
    .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)] as [string, string]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

const isPlain = (body: unknown): body is string | FormData | Blob =>
  typeof body === "string" || body instanceof FormData || body instanceof Blob;

const onEnd = new Set<() => void>();
/** Calls `listener` when a response says that the session has ended. */
export function whenSessionEnds(listener: () => void): void {
  onEnd.add(listener);
}
const onAsked = new Set<(isReached: boolean) => void>();
/** Calls `listener` after each request, with whether it has reached the server. */
export function whenAsked(listener: (isReached: boolean) => void): void {
  onAsked.add(listener);
}
const onBusy = new Set<(seconds: number) => void>();
/** Calls `listener` with the seconds to wait when the API limits the rate. */
export function whenLimited(listener: (seconds: number) => void): void {
  onBusy.add(listener);
}

const waitsMax = 3;

/** Sends a request with the session's cookie. Rejects with ApiFailure when the API cannot be reached. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  for (let waited = 0; ; waited++) {
    const response = await fetch(`/client/v4${path}`, {
      ...init,
      headers: { "x-selvedge-dashboard": "1", ...(init.headers as Record<string, string>) },
    }).catch((error: unknown) => {
      if (init.signal?.aborted === true) throw error;
      for (const listener of onAsked) listener(false);
      throw new ApiFailure(0, [{ code: 0, message: "The server cannot be reached" }]);
    });
    for (const listener of onAsked) listener(true);
    if (response.status !== 429 || waited === waitsMax) return response;
    const seconds = Math.min(60, Number(response.headers.get("retry-after") ?? 5));
    for (const listener of onBusy) listener(seconds);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

/** Performs a call and returns its answer. Rejects with ApiFailure. */
export async function perform<T>(call: Call, signal?: AbortSignal): Promise<ApiResponse<T>> {
  const { body } = call;
  const response = await send(pathOf(call), {
    method: methodOf(call),
    headers: {
      ...(body === undefined || isPlain(body) ? {} : { "content-type": "application/json" }),
      ...call.headers,
    },
    ...(body === undefined ? {} : { body: isPlain(body) ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  return answerOf<T>(response);
}

/** Reads a resource by its path below /client/v4. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<ApiResponse<T>> {
  return answerOf<T>(await send(path, signal === undefined ? {} : { signal }));
}

/** The answer in the envelope of a response. Rejects with ApiFailure. */
export async function answerOf<T>(response: Response): Promise<ApiResponse<T>> {
  const id = response.headers.get("x-request-id") ?? response.headers.get("cf-ray") ?? undefined;
  const envelope = (await response.json().catch(() => undefined)) as
    | {
        success: boolean;
        result: T;
        result_info?: ResultInfo;
        errors?: ApiMessage[];
        messages?: ApiMessage[];
      }
    | undefined;
  if (envelope?.success === true)
    return {
      result: envelope.result,
      info: envelope.result_info ?? {},
      messages: envelope.messages ?? [],
      etag: response.headers.get("etag") ?? undefined,
    };
  if (response.status === 401) for (const listener of onEnd) listener();
  const errors = envelope?.errors ?? [
    { code: response.status, message: `The server answered ${response.status}` },
  ];
  throw new ApiFailure(response.status, errors, id);
}
