import { isIP } from "node:net";
import { z } from "zod";
import { clock } from "../../platform/timers/clock.ts";
import { withoutCredentials } from "../redacted.ts";
import { TestFault } from "../test-fault.ts";

/**
 * Requests beyond this machine that the test does not answer: "block" refuses them, "refuse" also makes the test fail,
 * and "allow" sends them.
 */
export const OutboundModeSchema = z.enum(["block", "refuse", "allow"]);
export type OutboundMode = z.output<typeof OutboundModeSchema>;

const headersMax = 100;

/** A test's answer to requests: data, or the URL of an HTTP server on this machine that answers. */
export const OutboundAnswerSchema = z.strictObject({
  /** A URL, in which * stands for any text, or a regular expression. */
  url: z.string().max(2000).optional(),
  pattern: z.strictObject({ source: z.string().max(2000), flags: z.string().max(10) }).optional(),
  method: z.string().max(16).optional(),
  then: z.union([
    z.strictObject({ ask: z.url().max(300), secret: z.string().max(100).optional() }),
    z.strictObject({
      status: z.int().min(200).max(599).default(200),
      headers: z.record(z.string().max(200), z.string().max(8192)).optional(),
      body: z.string().max(16_000_000).optional(),
    }),
  ]),
});
type OutboundAnswerInput = z.output<typeof OutboundAnswerSchema>;

/** A request that left the platform, or would have left it without the test kit. */
export interface NotedRequest {
  n: number;
  at: string;
  /** `origin` is the edge for a visitor; `socket` is a script's WebSocket or TCP connection, or a visitor's WebSocket. */
  from: "origin" | "script" | "socket";
  method: string;
  url: string;
  headers: Record<string, string>;
  answeredBy: "test" | "fault" | "network" | "refused";
  /** Null without an answer. */
  status: number | null;
  fault?: string;
}

interface Rule {
  id: string;
  pattern: RegExp;
  method: string | undefined;
  then: OutboundAnswerInput["then"];
}

const requestsMax = 10_000;
const answersMax = 1000;

/** The requests that leave the platform, and the tests' answers to them. Of several that match, the newest is used. */
export class TestedOutbound {
  mode: OutboundMode = "allow";
  #requests: NotedRequest[] = [];
  #answers: Rule[] = [];
  #count = 0;
  #answerCount = 0;

  /** Returns the id of the answer. */
  add({ url, pattern, method, then }: OutboundAnswerInput): string {
    if ((url === undefined) === (pattern === undefined))
      throw new TestFault(400, "Expected either url or pattern");
    if (this.#answers.length >= answersMax)
      throw new TestFault(409, `Expected at most ${answersMax} answers`);
    if ("ask" in then && isIP(hostOf(then.ask)) === 0)
      throw new TestFault(400, `Expected an http URL with an IP address for ask but received ${then.ask}`);
    const id = `answer-${++this.#answerCount}`;
    this.#answers.unshift({ id, pattern: patternOf(url, pattern), method: method?.toUpperCase(), then });
    return id;
  }

  remove(id: string): boolean {
    const count = this.#answers.length;
    this.#answers = this.#answers.filter((rule) => rule.id !== id);
    return this.#answers.length < count;
  }

  /** Forgets the answers and the requests. */
  clear(): void {
    this.#answers = [];
    this.#requests = [];
    this.#count = 0;
  }

  /** The test's answer to a request; undefined if the test has none. */
  find(method: string, url: URL): Rule | undefined {
    return this.#answers.find(
      (rule) => (rule.method === undefined || rule.method === method) && rule.pattern.test(url.href),
    );
  }

  /** Whether a request to this host must not leave the platform without an answer of the test. */
  blocks(host: string): boolean {
    return this.mode !== "allow" && !isThisMachine(host);
  }

  get requests(): readonly NotedRequest[] {
    return this.#requests;
  }

  note(
    from: NotedRequest["from"],
    method: string,
    url: string,
    headers: readonly string[] = [],
  ): NotedRequest {
    const noted: NotedRequest = {
      n: ++this.#count,
      at: new Date(clock.now()).toISOString(),
      from,
      method,
      url,
      headers: withoutCredentials(pairsOf(headers)),
      answeredBy: "network",
      status: null,
    };
    this.#requests.push(noted);
    if (this.#requests.length > requestsMax) this.#requests.shift();
    return noted;
  }
}

/** Names below localhost, and loopback addresses. */
export const isThisMachine = (host: string): boolean =>
  /(^|\.)localhost\.?$/i.test(host) || /^(127\.\d+\.\d+\.\d+|\[?::1\]?)$/.test(host);

function patternOf(url: string | undefined, pattern: { source: string; flags: string } | undefined): RegExp {
  if (url !== undefined) return new RegExp(`^${url.split("*").map(escaped).join(".*")}$`, "s");
  try {
    return new RegExp(pattern!.source, pattern!.flags.replace(/[gy]/g, ""));
  } catch {
    throw new TestFault(400, "Expected a JavaScript regular expression for pattern");
  }
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, "");

function* pairsOf(headers: readonly string[]): Generator<[string, string], void> {
  for (let i = 0; i < Math.min(headers.length, headersMax * 2); i += 2)
    yield [headers[i]!.toLowerCase(), headers[i + 1]!];
}

const escaped = (text: string): string => text.replace(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`);
