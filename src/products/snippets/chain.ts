import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { RunAdmission } from "../../sandbox/limits/admission.ts";
import type { Cells } from "../../sandbox/cells.ts";
import { cellHeaders } from "../../sandbox/protocol.ts";
import { headerText } from "../../sandbox/gateway/cell-messages.ts";
import { CellError } from "../../sandbox/errors.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import { refuse } from "../../sandbox/gateway/gateway-server.ts";
import { idInCells, type CellScript } from "../../sandbox/process/script.ts";
import { CountedBody } from "../../edge/http/body.ts";
import { respondWithError } from "../../edge/request/error-page.ts";
import { VisitorError, visitorError, visitorErrors } from "../../edge/http/errors.ts";
import type { EdgeHandler, EdgeHttpRequest, EdgeRequest } from "../../edge/request/handlers.ts";
import { externalHeaders, visitorHeaders } from "../../edge/http/headers.ts";
import type { Outbound, Send } from "../../edge/origin/outbound.ts";
import { inChildSpan, type Span } from "../../platform/tracing/spans/span.ts";
import { withTrace } from "../../platform/tracing/spans/trace-headers.ts";
import { nextVia, type Via } from "../../edge/http/via.ts";
import { plans } from "../../control/zones/plans.ts";
import { refusals } from "../../workers/runtime/errors.ts";
import type { AnswerImageFetch } from "../../workers/runtime/runtime-options.ts";
import { shownStack } from "../../workers/stack-traces/frames.ts";
import type { RunnableSnippet } from "./snippet.ts";
import type { Snippets } from "./snippets.ts";
import { snippetFault, snippetFaults, type SnippetFault } from "./visitor-errors.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

export interface SnippetLimits {
  cpuMs: number;
  memoryBytes: number;
  bodyBytesMax: number;
  /** Total subrequests of all scripts and snippets that run because of one request. */
  treeSubRequests: number;
}

export interface SnippetChainOptions {
  snippets: Snippets;
  cells: Cells;
  subrequests: RunAdmission;
  outbound: Outbound;
  answerImageFetch: AnswerImageFetch;
  limits: SnippetLimits;
  /** Whether the response shows the exception of a snippet. */
  isAuthor: (edgeRequest: EdgeRequest) => boolean;
  logger: Logger;
}

/** Snippets have no compatibility date of their own; they run with this one. */
const compatibilityDate = "2026-11-01";

/** Runs the snippets that a zone's rules select, in order, before the origin. */
export function snippetHandler(options: SnippetChainOptions): EdgeHandler {
  const { snippets } = options;
  const scripts = new WeakMap<RunnableSnippet, CellScript>();
  const scriptOf = (snippet: RunnableSnippet, accountId: string): CellScript => {
    const known = scripts.get(snippet);
    if (known?.accountId === accountId) return known;
    const script = cellScript(snippet, accountId, options.limits);
    scripts.set(snippet, script);
    return script;
  };
  return (edgeRequest) => {
    if (edgeRequest.zone === undefined) return false;
    const zoneId = edgeRequest.zone.id;
    const rules = snippets.snippetRules(zoneId);
    if (rules.length === 0) return false;
    const run = (): boolean | Promise<boolean> => {
      const selected: CellScript[] = [];
      for (const rule of rules) {
        const snippet = rule.matches(edgeRequest.describe)
          ? snippets.snippet(zoneId, rule.snippetName)
          : undefined;
        if (snippet !== undefined) selected.push(scriptOf(snippet, accountOf(edgeRequest)));
      }
      if (selected.length === 0) return false;
      return new Chain(options, edgeRequest, selected).run().then(() => true);
    };
    return snippets.readsBody(zoneId) ? edgeRequest.readBody().then(run) : run();
  };
}

/** One edge request and the snippets that it passes through. */
class Chain {
  readonly #options: SnippetChainOptions;
  readonly #edgeRequest: EdgeHttpRequest;
  readonly #snippets: readonly CellScript[];
  readonly #subrequestsMax: number;
  /** The Via of the snippets' requests: all snippets together are one hop. */
  readonly #via: Via;
  /** By the indexes of the snippets; empty without traces. */
  readonly #spans: Span[] = [];

  constructor(options: SnippetChainOptions, edgeRequest: EdgeHttpRequest, snippets: readonly CellScript[]) {
    this.#options = options;
    this.#edgeRequest = edgeRequest;
    this.#snippets = snippets;
    this.#via = nextVia(edgeRequest.via);
    this.#subrequestsMax = plans[edgeRequest.zone?.configuration?.plan ?? "free"].snippetSubrequestsMax;
  }

  async run(): Promise<void> {
    const { request, response, path, ray, scriptHeaders } = this.#edgeRequest;
    await this.#runAt(0, request, response, path, scriptHeaders(), (raw, status) =>
      visitorHeaders(raw, ray, status),
    );
  }

  #viaOf(index: number): Via {
    const span = this.#spans[index];
    return span === undefined ? this.#via : { ...this.#via, span };
  }

  /**
   * Runs one snippet. Its fetch of the request goes to the next snippet, and from the last one to the origin.
   */
  async #runAt(
    index: number,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    headers: readonly string[],
    responseHeaders: (raw: readonly string[], status: number) => string[],
  ): Promise<void> {
    const parent = index === 0 ? this.#edgeRequest.span : this.#spans[index - 1];
    if (parent === undefined)
      return this.#runSnippet(index, request, response, path, headers, responseHeaders);
    const snippet = this.#snippets[index]!;
    await inChildSpan(parent, snippetName(snippet), async (span = parent) => {
      this.#spans[index] = span;
      await this.#runSnippet(index, request, response, path, withTrace(headers, span), responseHeaders);
    });
  }

  async #runSnippet(
    index: number,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    headers: readonly string[],
    responseHeaders: (raw: readonly string[], status: number) => string[],
  ): Promise<void> {
    const { cells, limits, logger } = this.#options;
    const { zone, isTls, cf } = this.#edgeRequest;
    const snippet = this.#snippets[index]!;
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    if (Number(length ?? 0) > limits.bodyBytesMax) throw visitorErrors.bodyTooLarge();
    const hasBody = length !== undefined || coding !== undefined;
    let hooks: SnippetHooks | undefined;
    try {
      await cells.run(() => ({
        script: snippet,
        request: {
          method: request.method ?? "GET",
          path,
          headers: [...headers, "x-selvedge-proto", isTls ? "https" : "http"],
          cf: cf(),
          body: hasBody ? new CountedBody(request, limits.bodyBytesMax) : null,
        },
        answer: { response, headers: responseHeaders },
        hooks: () => (hooks = this.#hooks(index)),
        kind: index === 0 && this.#edgeRequest.via === undefined ? "request" : "call",
      }));
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      const fault = snippetFault(
        shownError(error),
        hooks?.refusal,
        this.#options.isAuthor(this.#edgeRequest),
      );
      logger.warn(
        { zone: zone?.id, snippet: snippet.id, code: fault.code, err: fault.cause ?? error },
        "a snippet failed",
      );
      throw fault;
    }
  }

  #hooks(index: number): SnippetHooks {
    let subrequests = 0;
    let isContinued = false;
    const hooks: SnippetHooks = {
      refusal: undefined,
      fetch: (url, request, response) => {
        const image = request.headers[cellHeaders.image];
        const isContinuation = image === undefined && url.hostname === this.#edgeRequest.host;
        const isOver =
          subrequests >= this.#subrequestsMax ||
          ++this.#via.tree.subrequests > this.#options.limits.treeSubRequests;
        if (isContinuation ? isContinued : isOver) {
          hooks.refusal = isContinuation
            ? snippetFaults.continuedTwice
            : snippetFaults.subrequests(this.#subrequestsMax);
          refuse(response, hooks.refusal.message);
          return;
        }
        if (isContinuation) isContinued = true;
        else subrequests++;
        const work =
          image !== undefined
            ? this.#fetchImage(index, headerText("cf.image", image), url, request, response)
            : isContinuation
              ? this.#continue(index, url, request, response)
              : this.#fetch(index, url, request, response);
        unawaited(
          work.catch((error: unknown) => this.#answerSnippet(error, isContinuation, request, response)),
        );
      },
    };
    return hooks;
  }

  async #fetch(index: number, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { subrequests, outbound } = this.#options;
    const { accountId, owner } = this.#snippets[index]!;
    const kind = this.#edgeRequest.via === undefined ? "request" : "call";
    const share = subrequests.of(accountId, owner, kind);
    const sender = { accountId, via: this.#viaOf(index), clientAddress: this.#edgeRequest.clientAddress };
    const waited = await subrequests.within(share, response, async () =>
      outbound.fetch(url, request, response, sender),
    );
    if (waited === "refused")
      throw new VisitorError(503, 1205, "Snippets are busy", refusals.tooManyInFlight().message);
  }

  /** A picture of the visitor's own host comes from its origin, skipping later snippets. */
  async #fetchImage(
    index: number,
    image: string,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { host, zone } = this.#edgeRequest;
    const send: Send = async (to, from, answer) =>
      to.hostname === host
        ? this.#edgeRequest.next(from, answer, to.pathname + to.search, this.#viaOf(index))
        : this.#fetch(index, to, from, answer);
    const owner = { id: zone?.id ?? "", accountId: accountOf(this.#edgeRequest) };
    const asked = { image, url, send };
    await inChildSpan(this.#spans[index], "image.transform", async () =>
      this.#options.answerImageFetch(owner, asked, request, response),
    );
  }

  async #continue(
    index: number,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const path = url.pathname + url.search;
    if (index + 1 >= this.#snippets.length) {
      await this.#edgeRequest.next(request, response, path, this.#viaOf(index));
      return;
    }
    const headers = externalHeaders(request.rawHeaders, url.host);
    await this.#runAt(index + 1, request, response, path, headers, (raw) => [...raw]);
  }

  /** A continuation fails with an error page; a fetch to another host fails with an error. */
  #answerSnippet(
    error: unknown,
    isContinuation: boolean,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const visible = visitorError(error);
    if (visible.code === 500)
      this.#options.logger.error({ err: error, ray: this.#edgeRequest.ray }, "a fetch of a snippet failed");
    if (isContinuation || response.headersSent)
      respondWithError(request, response, visible, this.#edgeRequest.ray);
    else refuse(response, `${visible.title}: ${visible.message}`);
  }
}

const cellScript = (
  { id, mainModule, modules }: RunnableSnippet,
  accountId: string,
  { cpuMs, memoryBytes }: SnippetLimits,
): CellScript => ({
  id: idInCells(id),
  // The same for all versions.
  owner: `snippet ${id.slice(0, id.lastIndexOf("@"))}`,
  accountId,
  profile: "snippet",
  mainModule,
  modules: modules.map((module) => ({ ...module, kind: "js" as const })),
  compatibilityDate,
  compatibilityFlags: [],
  cpuMs,
  memoryBytes,
  env: {},
});

/** Removes the platform's frames from a snippet's exception. */
function shownError(error: CellError): CellError {
  const thrown = error.cause as Thrown | undefined;
  if (error.kind !== "exception" || thrown?.stack === undefined) return error;
  const stack = shownStack(thrown.stack, () => undefined);
  return new CellError("exception", error.message, { cause: { ...thrown, stack } });
}

/** "snippet" and its name, without the id of the version. */
const snippetName = ({ owner }: CellScript): string => owner.replace(/^snippet \S*[ /]/, "snippet ");

/** The account that owns the snippets of an edge request. */
const accountOf = ({ zone }: EdgeHttpRequest): string => zone?.configuration?.accountId ?? zone?.id ?? "";

interface SnippetHooks extends RunHooks {
  /** The last refused fetch. */
  refusal: SnippetFault | undefined;
}
