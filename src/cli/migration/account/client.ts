import { setTimeout as delay } from "node:timers/promises";
import { clock } from "../../../platform/timers/clock.ts";
import { CallRefused, MigrationError, UncertainError } from "../failure.ts";
import { readBounded } from "./bounded-body.ts";
import { retryDelayMs } from "./retry.ts";

/** An answer with status 200 to 299. */
export interface ApiResponse {
  contentType: string;
  /** The main module of a script's code. */
  entrypoint: string | null;
  body: Uint8Array;
}
/** The answers that an interrupted import has received already. */
export interface Recorded {
  find(path: string): ApiResponse | undefined;
  add(path: string, answer: ApiResponse): void;
}
export interface ClientOptions {
  baseUrl: string;
  token: string;
  /** The largest number of calls that begin within a second; 0 for no limit. */
  callsPerSecond: number;
  recorded?: Recorded | undefined;
  /** Prints what the client waits for. */
  report?: ((text: string) => void) | undefined;
}
export interface Envelope {
  result: unknown;
  result_info: Record<string, unknown>;
}

const attemptsMax = 8;
const answerMsMax = 120_000;
/** The largest value of a key and the largest picture have 25 MiB. */
const bodyBytesMax = 64 * 1024 * 1024;

/** Calls a v4 API with limits on rate and sizes, and retries calls that may be repeated. Uses `fetch` only. */
export class Client {
  readonly #options: ClientOptions;
  #nextMs = 0;
  /** Calls that were sent, repetitions included. */
  callCount = 0;

  constructor(options: ClientOptions) {
    this.#options = { ...options, baseUrl: options.baseUrl.replace(/(?<!\/)\/+$/, "") };
  }

  /** A GET whose answer is an envelope. */
  async get(path: string): Promise<Envelope> {
    return envelopeOf(`GET ${path}`, await this.bytes(path));
  }

  /** A GET whose answer is not recorded on disk, because it contains secrets. */
  async getUnrecorded(path: string): Promise<Envelope> {
    return envelopeOf(`GET ${path}`, await this.#call("GET", path));
  }

  /** A GET whose answer is any bytes. */
  async bytes(path: string): Promise<ApiResponse> {
    const known = this.#options.recorded?.find(path);
    if (known !== undefined) return known;
    const answer = await this.#call("GET", path);
    this.#options.recorded?.add(path, answer);
    return answer;
  }

  /** A call that changes something. Throws UncertainError if it may have had its effect without an answer. */
  async send(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<unknown> {
    return envelopeOf(`${method} ${path}`, await this.#call(method, path, body)).result;
  }

  async #call(method: string, path: string, body?: unknown): Promise<ApiResponse> {
    for (let attempt = 0; ; attempt++) {
      await this.#pace();
      let response: Response;
      try {
        response = await this.#fetch(method, path, body);
        if (response.ok) return await this.#read(response);
      } catch (error) {
        if (error instanceof MigrationError) throw error;
        if (method === "GET" && attempt + 1 < attemptsMax) {
          await this.#wait(`${method} ${path} had no answer`, retryDelayMs(null, attempt, clock.now()));
          continue;
        }
        const cause = (error as Error).cause ?? error;
        throw new UncertainError(`${method} ${path} had no answer from ${this.#options.baseUrl}`, { cause });
      }
      const mayRepeat = response.status === 429 || (method === "GET" && response.status >= 500);
      if (mayRepeat && attempt + 1 < attemptsMax) {
        await response.body?.cancel();
        const ms = retryDelayMs(response.headers.get("retry-after"), attempt, clock.now());
        await this.#wait(`${method} ${path} was answered with ${response.status}`, ms);
        continue;
      }
      throw await failureOf(`${method} ${path}`, method, response);
    }
  }

  async #fetch(method: string, path: string, body: unknown): Promise<Response> {
    this.callCount += 1;
    const isForm = body instanceof FormData || body instanceof Blob;
    return fetch(`${this.#options.baseUrl}${path}`, {
      method,
      // A redirect would take the token to another host.
      redirect: "error",
      signal: AbortSignal.timeout(answerMsMax),
      headers: {
        authorization: `Bearer ${this.#options.token}`,
        ...(isForm || body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
  }

  async #read(response: Response): Promise<ApiResponse> {
    return {
      contentType: response.headers.get("content-type") ?? "",
      entrypoint: response.headers.get("cf-entrypoint"),
      body: await readBounded(response, bodyBytesMax),
    };
  }

  /** Waits for the moment at which the next call may begin. */
  async #pace(): Promise<void> {
    const { callsPerSecond } = this.#options;
    if (callsPerSecond === 0) return;
    const now = performance.now();
    const at = Math.max(now, this.#nextMs);
    this.#nextMs = at + 1000 / callsPerSecond;
    if (at > now) await delay(at - now);
  }

  async #wait(why: string, ms: number): Promise<void> {
    this.#options.report?.(`${why}; trying again in ${Math.ceil(ms / 1000)} s`);
    await delay(ms);
  }
}

async function failureOf(call: string, method: string, response: Response): Promise<MigrationError> {
  const errors = await errorsOf(response);
  const failure = new CallRefused(call, response.status, errors);
  return method !== "GET" && response.status >= 500 ? new UncertainError(failure.message) : failure;
}

const errorBytesMax = 64 * 1024;
const errorsMax = 10;

async function errorsOf(response: Response): Promise<{ code?: number; message?: string }[]> {
  try {
    const { errors } = JSON.parse(new TextDecoder().decode(await readBounded(response, errorBytesMax))) as {
      errors: unknown;
    };
    return Array.isArray(errors) ? errors.slice(0, errorsMax).map(errorOf) : [];
  } catch {
    return [];
  }
}

function errorOf(error: unknown): { code?: number; message?: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return {
    ...(typeof code === "number" ? { code } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}

function envelopeOf(call: string, { body, contentType }: ApiResponse): Envelope {
  if (body.length === 0) return { result: null, result_info: {} };
  try {
    const envelope = JSON.parse(new TextDecoder().decode(body)) as Partial<Envelope> | null;
    if (typeof envelope === "object" && envelope !== null && "result" in envelope)
      return { result: envelope.result, result_info: envelope.result_info ?? {} };
  } catch {
    // reported below
  }
  const received = contentType || "a body without a content type";
  throw new MigrationError(`${call} was answered with ${received} instead of a JSON envelope`);
}
