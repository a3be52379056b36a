import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Cells } from "../cells/cells.ts";
import { CellError } from "../cells/errors.ts";
import { refuse, type RunHooks } from "../cells/front-server.ts";
import type { CellScript } from "../cells/script.ts";
import { CountedBody } from "../edge/body.ts";
import { answerError } from "../edge/error-page.ts";
import { VisitorError, visitorErrors } from "../edge/errors.ts";
import type { EdgeHandler, EdgeVisit } from "../edge/handlers.ts";
import { externalHeaders, visitorHeaders } from "../edge/headers.ts";
import type { Outbound } from "../edge/outbound.ts";
import { plans } from "../zones/plans.ts";
import type { RunnableSnippet } from "./snippet.ts";
import type { Snippets } from "./snippets.ts";
import { snippetFault, snippetFaults, type SnippetFault } from "./visitor-errors.ts";

export interface SnippetLimits {
  cpuMs: number;
  memoryBytes: number;
  bodyBytesMax: number;
}

export interface SnippetChainOptions {
  snippets: Snippets;
  cells: Cells;
  outbound: Outbound;
  limits: SnippetLimits;
  logger: Logger;
}

/** Snippets take no compatibility date: they run as this version of the runtime has it. */
const compatibilityDate = "2026-11-01";

/** Runs the snippets that a zone's rules select, one after the other, each before the next and the last before the origin. */
export function snippetHandler(options: SnippetChainOptions): EdgeHandler {
  const { snippets } = options;
  return (visit) => {
    if (visit.zone === undefined) return false;
    const zoneId = visit.zone.id;
    const rules = snippets.snippetRules(zoneId);
    if (rules.length === 0) return false;
    const selected: RunnableSnippet[] = [];
    for (const rule of rules) {
      const snippet = rule.matches(visit.describe) ? snippets.snippet(zoneId, rule.snippetName) : undefined;
      if (snippet !== undefined) selected.push(snippet);
    }
    if (selected.length === 0) return false;
    return new Chain(options, visit, selected).run().then(() => true);
  };
}

/** One visit on its way through its snippets. */
class Chain {
  readonly #options: SnippetChainOptions;
  readonly #visit: EdgeVisit;
  readonly #snippets: readonly RunnableSnippet[];
  readonly #subrequestsMax: number;

  constructor(options: SnippetChainOptions, visit: EdgeVisit, snippets: readonly RunnableSnippet[]) {
    this.#options = options;
    this.#visit = visit;
    this.#snippets = snippets;
    this.#subrequestsMax = plans[visit.zone?.facts?.plan ?? "free"].snippetSubrequestsMax;
  }

  async run(): Promise<void> {
    const { request, response, path, ray, scriptHeaders } = this.#visit;
    await this.#runAt(0, request, response, path, scriptHeaders(), (raw, status) =>
      visitorHeaders(raw, ray, status),
    );
  }

  /** Runs one snippet; what it passes on goes to the next, and from the last to the origin. */
  async #runAt(
    index: number,
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    headers: readonly string[],
    answerHeaders: (raw: readonly string[], status: number) => string[],
  ): Promise<void> {
    const { cells, limits, logger } = this.#options;
    const { zone, isTls, cf } = this.#visit;
    const snippet = this.#snippets[index]!;
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    if (Number(length ?? 0) > limits.bodyBytesMax) throw visitorErrors.bodyTooLarge();
    const hasBody = length !== undefined || coding !== undefined;
    let hooks: SnippetHooks | undefined;
    try {
      await cells.run(() => ({
        script: this.#script(snippet),
        request: {
          method: request.method ?? "GET",
          path,
          headers: [...headers, "x-selvedge-proto", isTls ? "https" : "http"],
          cf: cf(),
          body: hasBody ? new CountedBody(request, limits.bodyBytesMax) : null,
        },
        answer: { response, headers: answerHeaders },
        hooks: () => (hooks = this.#hooks(index)),
      }));
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      const fault = snippetFault(error, hooks?.refusal);
      logger.warn(
        { zone: zone?.id, snippet: snippet.id, code: fault.code, err: error.cause ?? error },
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
        const isContinuation = url.hostname === this.#visit.host;
        if (isContinuation ? isContinued : subrequests >= this.#subrequestsMax) {
          hooks.refusal = isContinuation
            ? snippetFaults.continuedTwice
            : snippetFaults.subrequests(this.#subrequestsMax);
          refuse(response, hooks.refusal.message);
          return;
        }
        if (isContinuation) isContinued = true;
        else subrequests++;
        const work = isContinuation
          ? this.#continue(index, url, request, response)
          : this.#options.outbound.fetch(url, request, response);
        work.catch((error: unknown) => this.#answerSnippet(error, isContinuation, request, response));
      },
    };
    return hooks;
  }

  async #continue(
    index: number,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const path = url.pathname + url.search;
    if (index + 1 >= this.#snippets.length) {
      await this.#visit.next(request, response, path);
      return;
    }
    const headers = externalHeaders(request.rawHeaders, url.host);
    await this.#runAt(index + 1, request, response, path, headers, (raw) => [...raw]);
  }

  /** A snippet gets the page of what went wrong behind it; for a fetch to the outside it gets an error. */
  #answerSnippet(
    error: unknown,
    isContinuation: boolean,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const visible = error instanceof VisitorError ? error : visitorErrors.internal(error);
    if (visible.code === 500)
      this.#options.logger.error({ err: error, ray: this.#visit.ray }, "a fetch of a snippet failed");
    if (isContinuation || response.headersSent) answerError(request, response, visible, this.#visit.ray);
    else refuse(response, `${visible.title}: ${visible.message}`);
  }

  #script({ id, mainModule, modules }: RunnableSnippet): CellScript {
    const { cpuMs, memoryBytes } = this.#options.limits;
    return {
      id,
      owner: `snippet ${id.slice(0, id.lastIndexOf("@"))}`,
      profile: "snippet",
      mainModule,
      modules: modules.map((module) => ({ ...module, kind: "js" as const })),
      compatibilityDate,
      compatibilityFlags: [],
      cpuMs,
      memoryBytes,
      env: {},
    };
  }
}

interface SnippetHooks extends RunHooks {
  /** The last fetch that was refused. */
  refusal: SnippetFault | undefined;
}
