import { isIPv6 } from "node:net";
import { VisitorError, visitorErrors } from "../../edge/http/errors.ts";
import type { ClientRequest, OriginClient, ResponseReceiver } from "../../edge/origin-client/exchange.ts";
import type { Tested } from "../../edge/origin/under-test.ts";
import { AlteredResponse } from "../faults/altered-response.ts";
import type { FaultRules, AppliedFault } from "../faults/fault-rules.ts";
import { applyOriginFault, type OriginFault } from "../faults/origin-faults.ts";
import { NotedResponse } from "./noted-response.ts";
import type { NotedRequest, TestedOutbound } from "./outbound.ts";

/** The faults and answers that replace the internet. */
export interface TestedParts {
  outbound: TestedOutbound;
  faults: FaultRules<OriginFault>;
  /** The client for a server of the test. */
  serverOfTest: (url: URL) => OriginClient;
}

/** Maximum time of the fault "hang": a test should not wait for the edge's whole timeout. */
const hangMs = 1000;

interface Asked {
  request: ClientRequest;
  url: URL;
  noted: NotedRequest;
  answer: NotedResponse;
}

/** Sends requests to one destination, unless a fault or the test answers them, or the outbound mode forbids them. */
export class TestedClient implements OriginClient {
  readonly #client: OriginClient;
  readonly #to: Tested;
  readonly #parts: TestedParts;

  constructor(client: OriginClient, to: Tested, parts: TestedParts) {
    this.#client = client;
    this.#to = to;
    this.#parts = parts;
  }

  send(request: ClientRequest, receiver: ResponseReceiver): void {
    const { outbound, faults } = this.#parts;
    const { who, address, tls } = this.#to;
    const url = urlOf(request, this.#to);
    const noted = outbound.note(who, request.method, url.href, request.headers);
    const answer = new NotedResponse(receiver, noted);
    if (answer.isOver) return;
    const asked: Asked = { request, url, noted, answer };
    const applied = applyOriginFault(faults, { url, address, isVerified: tls?.isVerified === true });
    if (applied === undefined) this.#goOn(asked, answer);
    else this.#fail(asked, applied);
  }

  /** Sends the request to the test, if it has an answer; otherwise to the destination, if that is allowed. */
  #goOn({ request, url, noted, answer }: Asked, receiver: ResponseReceiver): void {
    const { outbound, serverOfTest } = this.#parts;
    const rule = outbound.find(request.method, url);
    if (rule !== undefined) {
      noted.answeredBy = "test";
      const { then } = rule;
      if ("ask" in then) {
        const server = new URL(then.ask);
        const sent = ["x-selvedge-url", url.href, "x-selvedge-answer", rule.id];
        if (then.secret !== undefined) sent.push("x-selvedge-secret", then.secret);
        serverOfTest(server).send({ ...request, headers: [...request.headers, ...sent] }, receiver);
      } else {
        const { status, headers = {}, body = "" } = then;
        const bytes = Buffer.from(body);
        receiver.began({ abort: (error) => answer.failed(error), pause() {}, resume() {} });
        receiver.head(status, "", [...Object.entries(headers).flat(), "content-length", `${bytes.length}`]);
        if (bytes.length > 0 && request.method !== "HEAD") receiver.data(bytes);
        receiver.end("", []);
      }
    } else if (outbound.blocks(this.#hostOf(url))) {
      noted.answeredBy = "refused";
      answer.failed(refusal(`${request.method} ${url.href}`));
    } else this.#client.send(request, receiver);
  }

  /** The host that decides whether a request is blocked: the URL's for scripts, else the address of the record. */
  #hostOf(url: URL): string {
    return this.#to.who === "script" ? url.hostname : this.#to.address;
  }

  #fail(asked: Asked, applied: AppliedFault<OriginFault>): void {
    const { noted, answer } = asked;
    const { then } = applied.fault;
    noted.fault = applied.id;
    if (typeof then !== "string") {
      if ("status" in then) {
        noted.answeredBy = "fault";
        answer.head(then.status, "", ["content-type", "text/plain"]);
        answer.end("A fault of the test kit", []);
      } else if ("latencyMs" in then) {
        const { latencyMs, jitterMs = 0 } = then;
        const ms = latencyMs + Math.round(applied.chance("jitters") * jitterMs);
        setTimeout(() => answer.isOver || this.#goOn(asked, answer), ms).unref();
      } else this.#goOn(asked, new AlteredResponse(answer, then));
      return;
    }
    noted.answeredBy = "fault";
    if (then === "hang")
      setTimeout(
        () => answer.failed(visitorErrors.originFirstByteTimeout()),
        Math.min(this.#to.limits.firstByteTimeoutMs, hangMs),
      ).unref();
    else answer.failed(failures[then]());
  }
}

const coded = (code: string, more: object = {}): Error =>
  Object.assign(new Error(`a fault of the test kit: ${code}`), { code, ...more });

const failures = {
  refuse: () => coded("ECONNREFUSED", { syscall: "connect" }),
  reset: () => coded("ECONNRESET"),
  "tls-expired": () => visitorErrors.originCertificate(coded("CERT_HAS_EXPIRED")),
  "tls-wrong-host": () => visitorErrors.originCertificate(coded("ERR_TLS_CERT_ALTNAME_INVALID")),
};

/** The error for a request that must not leave the platform. */
export const refusal = (named: string): VisitorError =>
  new VisitorError(
    403,
    1890,
    "Refused by the test kit",
    `The test does not answer ${named}, and requests beyond this machine are blocked. Add an answer with outbound.on().`,
  );

/** The URL that a request names by its Host header; without one, that of its connection. */
function urlOf({ headers, path }: ClientRequest, { address, port, tls }: Tested): URL {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  const host = at < 0 ? `${isIPv6(address) ? `[${address}]` : address}:${port}` : headers[at + 1]!;
  const base = `${tls === undefined ? "http" : "https"}://${host}`;
  return URL.parse(path, base) ?? new URL(base);
}
