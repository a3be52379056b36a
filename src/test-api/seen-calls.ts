import { setTimeout as delay } from "node:timers/promises";
import { once } from "node:events";
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { failure } from "../control/api/envelope.ts";
import { ApiError } from "../control/api/errors.ts";
import type { SeenCall } from "../control/api/server/hooks.ts";
import { canonicalPath } from "../control/api/server/paths.ts";
import { clock } from "../platform/timers/clock.ts";
import { newUuid } from "../platform/util/ids.ts";
import { applyApiFault, dependsOnBody, type ApiFault, type Met } from "./faults/api-faults.ts";
import type { FaultRules } from "./faults/fault-rules.ts";
import { resetMeanwhile, type Epochs } from "./epochs.ts";
import type { RecordedCalls } from "./journal.ts";
import { withoutCredentials, withoutSecretFields } from "./redacted.ts";
import type { SeededIds } from "./seeded-ids.ts";

const shownCharsMax = 65_536;

interface SeenCallsParts {
  epochs: Epochs;
  journal: RecordedCalls;
  faults: FaultRules<ApiFault>;
  ids: SeededIds | undefined;
}

/** Thrown to stop a call before its handler. The fault provides the answer. */
const stopped = (): ApiError => new ApiError(500, 1000, "A fault of the test kit answers this call");

/** Performs the calls of the management API under test: records them, and applies faults. */
export class SeenCalls {
  readonly #parts: SeenCallsParts;
  readonly #met = new WeakMap<SeenCall, Met>();
  /** Calls whose body, which is not known yet, decides about their fault. */
  readonly #undecided = new WeakSet<SeenCall>();
  /** Number of calls in progress. */
  inFlight = 0;

  constructor(parts: SeenCallsParts) {
    this.#parts = parts;
  }

  readonly around = async (call: SeenCall, perform: () => Promise<Response>): Promise<Response> => {
    const { epochs, journal } = this.#parts;
    const { origin } = epochs;
    const begun = { n: journal.next(), at: clock.now(), from: performance.now(), epoch: epochs.current };
    this.inFlight++;
    try {
      const answer = await this.#performed(call, perform);
      const isStale = begun.epoch !== epochs.current;
      const shown = isStale ? failure(resetMeanwhile(), newUuid()) : answer;
      if (!isStale) await this.#note(call, shown, begun, origin?.changed ?? []);
      return shown;
    } finally {
      this.inFlight--;
    }
  };

  /** Called when the body was read. */
  readonly read = async (call: SeenCall): Promise<void> => {
    const { epochs, ids, faults } = this.#parts;
    const { origin } = epochs;
    if (origin !== undefined) ids?.identify(origin, call.body);
    if (!this.#undecided.delete(call)) return;
    const met = applyApiFault(faults, call);
    if (met === undefined) return;
    this.#met.set(call, met);
    if (isBefore(met)) throw stopped();
  };

  async #performed(call: SeenCall, perform: () => Promise<Response>): Promise<Response> {
    const { faults } = this.#parts;
    const decide = (): void => {
      const met = applyApiFault(faults, call);
      if (met !== undefined) this.#met.set(call, met);
    };
    if (dependsOnBody(faults, call)) this.#undecided.add(call);
    else decide();
    const first = this.#met.get(call);
    const answer = first !== undefined && isBefore(first) ? undefined : await perform();
    // The call was refused before its body was read.
    if (this.#undecided.delete(call)) decide();
    const met = this.#met.get(call);
    if (met === undefined) return answer!;
    await delay(met.delayMs);
    const { then } = met;
    // A fault with only a delay does not change the answer.
    const isLeft = then.status === undefined && then.connection === undefined;
    if (isLeft) return answer!;
    if (then.connection !== undefined) await breakConnection(call, then.connection);
    return failure(errorOf(then), newUuid());
  }

  async #note(
    call: SeenCall,
    answer: Response,
    { n, at, from }: { n: number; at: number; from: number },
    changed: readonly string[],
  ): Promise<void> {
    const { operation, incoming, actor, body } = call;
    const { pathname, searchParams } = new URL(call.url);
    const id = operation?.id ?? null;
    const fault = this.#met.get(call)?.id;
    this.#parts.journal.add({
      n,
      at: new Date(at).toISOString(),
      operation: id,
      method: incoming.method!,
      path: canonicalPath(pathname),
      query: withoutCredentials(searchParams),
      headers: withoutCredentials(Object.entries(incoming.headers)),
      body: shortened(withoutSecretFields(body, id)),
      token: actor?.id ?? null,
      status: answer.status,
      response: shortened(withoutSecretFields(await jsonOf(answer), id)),
      ms: Math.round((performance.now() - from) * 10) / 10,
      ...(fault === undefined ? {} : { fault }),
      changed: [...changed],
    });
  }
}

const isBefore = ({ then }: Met): boolean =>
  then.when !== "after" && (then.status !== undefined || then.connection !== undefined);

function errorOf({ status = 500, code, message, retryAfter }: Met["then"]): ApiError {
  const isLimit = status === 429;
  return new ApiError(
    status,
    code ?? (isLimit ? 10013 : 1000),
    message ?? (isLimit ? "Rate limit exceeded" : "A fault of the test kit"),
    { retryAfterSeconds: retryAfter },
  );
}

/** Resolves when the connection has ended. */
async function breakConnection(
  { incoming }: SeenCall,
  how: NonNullable<Met["then"]["connection"]>,
): Promise<void> {
  const { socket } = incoming;
  if (socket.destroyed) return;
  const closed = once(socket, "close");
  if (how === "reset") socket.resetAndDestroy();
  if (how === "cut-headers") socket.end("HTTP/1.1 200 OK\r\ncontent-type: applica");
  if (how === "cut-body")
    socket.end(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"result":{"id"',
    );
  if (how.startsWith("cut")) socket.once("finish", () => socket.destroy());
  await closed;
}

const decoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: zstdDecompressSync,
  deflate: inflateSync,
};

async function jsonOf(answer: Response): Promise<unknown> {
  if (answer.headers.get("content-type")?.startsWith("application/json") !== true) return null;
  const bytes = new Uint8Array(await answer.clone().arrayBuffer());
  const decode = decoders[answer.headers.get("content-encoding") ?? ""] ?? ((raw: Uint8Array) => raw);
  try {
    return JSON.parse(new TextDecoder().decode(decode(bytes))) as unknown;
  } catch {
    return null;
  }
}

function shortened(value: unknown): unknown {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  return text.length <= shownCharsMax ? value : `${text.slice(0, shownCharsMax)}…`;
}
