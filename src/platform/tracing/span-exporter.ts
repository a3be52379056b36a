import { request as httpRequest, Agent as HttpAgent, type IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as HttpsAgent } from "node:https";
import { unawaited } from "../util/uncaught.ts";
import { readUpTo } from "../util/read-up-to.ts";
import type { SpanEncoding } from "./otlp/encoding.ts";
import { SpanBatches, type SpanBatch } from "./span-batches.ts";
import type { AttributeValue, KeptSpan, SpanSink } from "./spans/span.ts";

const everyMs = 1000;
/** Spans become bytes in groups: code that runs once in a request is not in the caches of the processor. */
const groupMax = 16;
/** How often a batch is sent before its spans are dropped. */
const attemptsMax = 4;
const timeoutMs = 10_000;
const responseBytesMax = 64 * 1024;
/** Statuses after which the same batch may be sent again (OTLP/HTTP, failures). */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export interface ExporterOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  encoding: SpanEncoding;
  /** Called when requests begin to fail, and with undefined when they succeed again. */
  onState: (failure: Error | undefined) => void;
}

/**
 * Sends ended spans to a collector, over OTLP/HTTP. `add` neither waits for the collector nor
 * throws. A span is soon converted to bytes: as an object, it would outlive its request, and the garbage
 * collector would copy it.
 */
export class SpanExporter implements SpanSink {
  readonly #options: ExporterOptions;
  readonly #url: URL;
  readonly #agent: HttpAgent;
  readonly #batches: SpanBatches;
  /** Ended spans that are not bytes yet. */
  #group: KeptSpan[] = [];
  #lost = 0;
  /** The wall-clock time at which `performance.now()` was 0, computed again for each batch. */
  #originMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  readonly #ended = new AbortController();
  #isFailing = false;
  exported = 0;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#url = new URL(options.url);
    this.#batches = new SpanBatches(options.encoding);
    this.#lookUpTime();
    const agentOptions = { keepAlive: true, maxSockets: 1 };
    this.#agent =
      this.#url.protocol === "https:" ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  }

  /** Number of lost spans, because too many waited or the collector did not accept them. */
  get dropped(): number {
    this.#encode();
    return this.#lost;
  }

  add(span: KeptSpan): void {
    if (this.#ended.signal.aborted) {
      this.#lost++;
      return;
    }
    if (this.#group.push(span) >= groupMax) this.#encode();
    else this.#timer ??= setTimeout(() => this.#send(), everyMs).unref();
  }

  #encode(): void {
    const spans = this.#group;
    if (spans.length === 0) return;
    this.#group = [];
    for (const span of spans) if (!this.#batches.add(span, this.#originMs)) this.#lost++;
    if (this.#batches.hasFull) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), everyMs).unref();
  }

  attribute(name: string, value: AttributeValue): string {
    return this.#options.encoding.attribute(name, value);
  }

  /** Sends the waiting spans for at most `deadlineMs`, and drops those that are left then. */
  async close(deadlineMs: number): Promise<void> {
    const timer = setTimeout(() => this.#ended.abort(), deadlineMs);
    this.#encode();
    while (this.#batches.count > 0 && !this.#ended.signal.aborted) {
      this.#send();
      await this.#sending;
    }
    await this.#sending;
    clearTimeout(timer);
    this.#encode();
    this.#ended.abort();
    clearTimeout(this.#timer);
    this.#lost += this.#batches.count;
    this.#batches.clear();
    this.#agent.destroy();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#encode();
    if (this.#sending !== undefined || this.#ended.signal.aborted) return;
    this.#lookUpTime();
    const batch = this.#batches.take();
    if (batch === undefined) return;
    this.#sending = this.#export(batch).finally(() => {
      this.#sending = undefined;
      if (this.#batches.hasFull) this.#send();
      else if (this.#batches.count > 0) this.#timer ??= setTimeout(() => this.#send(), everyMs).unref();
    });
    unawaited(this.#sending);
  }

  #lookUpTime(): void {
    this.#originMs = Date.now() - performance.now();
  }

  /** Sends a batch, with retries. Never rejects: spans that the collector does not accept are counted. */
  async #export(batch: SpanBatch): Promise<void> {
    const { onState } = this.#options;
    const { count } = batch;
    const body = batch.body();
    for (let attempt = 1; ; attempt++) {
      const { rejected, failure, waitMs } = await this.#attempt(body, count);
      if (failure === undefined || waitMs === undefined || attempt === attemptsMax) {
        this.#lost += rejected;
        this.exported += count - rejected;
        if ((failure === undefined) === this.#isFailing) onState(failure);
        this.#isFailing = failure !== undefined;
        // After a failure, the body's memory may still be in use by the socket, so the batch is not reused.
        if (failure === undefined) this.#batches.giveBack(batch);
        return;
      }
      await this.#wait(Math.max(waitMs, everyMs * 2 ** (attempt - 1)));
      if (this.#ended.signal.aborted) {
        this.#lost += count;
        return;
      }
    }
  }

  async #attempt(body: Buffer, count: number): Promise<Attempt> {
    try {
      const answer = await this.#post(body);
      const status = answer.statusCode ?? 0;
      const bytes = await readUpTo(answer, responseBytesMax);
      if (status >= 200 && status < 300) return { rejected: this.#rejectedOf(bytes, count) };
      const failure = new Error(`the collector of traces responded with status ${status}`);
      if (!retryable.has(status)) return { rejected: count, failure };
      return { rejected: count, failure, waitMs: waitOf(answer.headers["retry-after"]) };
    } catch (error) {
      return { rejected: count, failure: error as Error, waitMs: 0 };
    }
  }

  #rejectedOf(answer: Buffer, count: number): number {
    const rejected = this.#options.encoding.rejected(answer);
    return rejected > 0 && rejected <= count ? rejected : 0;
  }

  async #post(body: Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const send = this.#url.protocol === "https:" ? httpsRequest : httpRequest;
      const request = send(this.#url, {
        method: "POST",
        agent: this.#agent,
        headers: {
          ...this.#options.headers,
          "content-type": this.#options.encoding.contentType,
          "content-length": body.length,
        },
      });
      // Cheaper than signals that are joined, which a long-lived one remembers.
      const stop = (): void => {
        request.destroy(new Error("the collector of traces took too long"));
      };
      const timer = setTimeout(stop, timeoutMs).unref();
      const { signal } = this.#ended;
      signal.addEventListener("abort", stop);
      request.on("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
      });
      request.on("response", resolve).on("error", reject).end(body);
    });
  }

  async #wait(ms: number): Promise<void> {
    const { signal } = this.#ended;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms).unref();
      signal.addEventListener("abort", done);
      if (signal.aborted) done();
    });
  }
}

interface Attempt {
  rejected: number;
  failure?: Error;
  /** Milliseconds to wait before the batch is sent again; undefined if it must not be sent again. */
  waitMs?: number;
}

const waitMsMax = 30_000;

const waitOf = (retryAfter: string | undefined): number => {
  const seconds = Number(retryAfter ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, waitMsMax) : 0;
};
