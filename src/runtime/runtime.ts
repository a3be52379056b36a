import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { AssetServer } from "../assets/asset-server.ts";
import { answerWithAsset, type AssetVisit } from "../assets/front.ts";
import { internal } from "../cells/cell-folder.ts";
import type { RunOptions } from "../cells/cell.ts";
import type { Cells } from "../cells/cells.ts";
import { CellError } from "../cells/errors.ts";
import type { CellRequest } from "../cells/exchange.ts";
import type { RunHooks } from "../cells/front-server.ts";
import type { CellScript } from "../cells/script.ts";
import { CountedBody } from "../edge/body.ts";
import type { EdgeVisit, UpgradeVisit, Visit } from "../edge/handlers.ts";
import { externalHeaders, visitorHeaders } from "../edge/headers.ts";
import type { Outbound } from "../edge/outbound.ts";
import { visitorErrors } from "../edge/errors.ts";
import type { DispatchNamespaces } from "../dispatch/namespaces.ts";
import { ownerOf } from "../dispatch/namespaces.ts";
import type { BindingTypeName } from "../scripts/bindings.ts";
import type { LiveScript } from "../scripts/runtime-script.ts";
import type { Owner } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { TailEvent } from "../tail/event.ts";
import { requestEvent, triggerEvent } from "../tail/run-event.ts";
import { openTrace, type RunTrace } from "../tail/run-trace.ts";
import type { Tails } from "../tail/tails.ts";
import type { BindingHandler, Caller } from "./binding.ts";
import { CollectedResponse } from "./collected-response.ts";
import { refusals } from "./errors.ts";
import {
  entrypointName,
  noVisit,
  Run,
  type OutboundScript,
  type RunContext,
  type RunLimits,
  type RunRoot,
  type Target,
} from "./run.ts";
import { ScriptCache, type LoadedScript } from "./script-cache.ts";

export interface RuntimeLimits extends RunLimits {
  memoryBytes: number;
  /** In which a handler ends that no visitor waits for. */
  eventMs: number;
  bodyBytesMax: number;
  idleTimeoutMs: number;
  cacheBytes: number;
}

export interface RuntimeOptions {
  scripts: Scripts;
  namespaces: DispatchNamespaces;
  /** Where scripts of accounts run, with the customers that they dispatch to; and where a customer runs that is watched. */
  cells: { own: Cells; customers: Cells };
  outbound: Outbound;
  assets: AssetServer;
  tails: Tails;
  handlers: () => BindingHandlers;
  /** Changes with everything that a dispatch depends on. */
  generation: () => string;
  limits: RuntimeLimits;
  logger: Logger;
}

export type BindingHandlers = { [Type in BindingTypeName]?: BindingHandler<Type> };

const eventAnswerBytesMax = 1024 * 1024;

/** A version's code, ready for a cell, and what goes with each invocation of it. */
export interface PreparedScript {
  script: CellScript;
  hooks(trace: RunTrace | undefined): RunHooks;
  /** Undefined where nobody watches. */
  trace(entrypoint: string, event: TailEvent["event"]): RunTrace | undefined;
}

/** Runs the scripts of accounts and of their customers: for visitors, for each other, and for events. */
export class Runtime {
  readonly outbound: Outbound;
  readonly #options: RuntimeOptions;
  readonly #cache: ScriptCache;
  #handlers: BindingHandlers | undefined;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.outbound = options.outbound;
    this.#cache = new ScriptCache(options.limits.cacheBytes);
  }

  /** Notes what went wrong on the platform's side while it did something for a script. */
  logFault(error: unknown, caller: Caller): void {
    this.#options.logger.error({ err: error, caller }, "a script's request failed here");
  }

  bindingHandler(type: BindingTypeName): BindingHandler<BindingTypeName> | undefined {
    this.#handlers ??= this.#options.handlers();
    return this.#handlers[type] as BindingHandler<BindingTypeName> | undefined;
  }

  /** Runs a script for a visitor, or answers with a file of its own. Rejects with a CellError while nothing has been sent. */
  async visit(visit: EdgeVisit, live: LiveScript, root: RunRoot): Promise<void> {
    const { request, response, ray, host, path } = visit;
    const context = await this.#top(live, root);
    const asset: AssetVisit = { request, response, host, path, headers: ["cf-ray", ray] };
    if (await answerWithAsset(this.#options.assets, context.loaded.script, asset)) return;
    await this.#run(context, this.#requestOf(visit, this.#body(request)), {
      response,
      headers: (raw, status) => visitorHeaders(raw, ray, status),
    });
  }

  /** The same for a visitor who wants a WebSocket. */
  async visitUpgrade(visit: UpgradeVisit, live: LiveScript, root: RunRoot): Promise<void> {
    const { socket, head, ray } = visit;
    const context = await this.#top(live, root);
    await this.#run(context, this.#requestOf(visit, null), {
      socket,
      head,
      headers: (raw, status) => visitorHeaders(raw, ray, status),
      idleTimeoutMs: this.#options.limits.idleTimeoutMs,
    });
  }

  /**
   * Has a script handle an event other than a request: `scheduled`, `queue`, `tail`. Resolves with what the wrapper of the event
   * says. Rejects with a CellError.
   */
  async invoke(
    owner: Owner,
    live: LiveScript,
    event: string,
    body: string | Uint8Array,
    entrypoint?: string,
  ): Promise<unknown> {
    const context = await this.#top(live, noVisit(), owner);
    const response = new CollectedResponse(eventAnswerBytesMax);
    const { Readable } = await import("node:stream");
    const { eventMs } = this.#options.limits;
    const timer = setTimeout(() => response.destroy(), eventMs);
    try {
      await this.#run(
        context,
        {
          method: "POST",
          path: "/",
          headers: ["host", "event"],
          said: { event, entrypoint: entrypointName(entrypoint) },
          body: Readable.from([body], { objectMode: false }),
        },
        { response, headers: (raw) => [...raw] },
        () => triggerEvent(event, body),
      );
    } finally {
      clearTimeout(timer);
    }
    if (response.destroyed && !response.writableFinished)
      throw new CellError("exception", `The ${event} handler did not end within ${eventMs / 1000} seconds.`);
    return JSON.parse(response.body.toString()) as unknown;
  }

  /** Runs a script for another one; the answer goes to the front's socket. */
  async runNested(
    target: Target,
    { url, request, response }: { url: URL; request: IncomingMessage; response: ServerResponse },
  ): Promise<void> {
    const asset: AssetVisit = {
      request,
      response,
      host: url.hostname,
      path: url.pathname + url.search,
      headers: [],
    };
    if (
      target.entrypoint === undefined &&
      (await answerWithAsset(this.#options.assets, target.context.loaded.script, asset))
    )
      return;
    await this.#run(target.context, nestedRequest(target, url, request, this.#body(request)), {
      response,
      headers: (raw) => [...raw],
    });
  }

  async runNestedUpgrade(
    target: Target,
    { url, request, socket, head }: { url: URL; request: IncomingMessage; socket: Socket; head: Buffer },
  ): Promise<void> {
    await this.#run(target.context, nestedRequest(target, url, request, null), {
      socket,
      head,
      headers: (raw) => visitorHeaders(raw, ""),
      idleTimeoutMs: this.#options.limits.idleTimeoutMs,
    });
  }

  /** A script of an account, called by another. */
  async accountScript(accountId: string, name: string, root: RunRoot, depth: number): Promise<RunContext> {
    const owner: Owner = { accountId };
    const live = this.#options.scripts.live(owner, name);
    if (live === undefined) throw refusals.notFound();
    return this.#contextOf(owner, live, { root, depth });
  }

  /** A customer's script, with what its dispatcher says of it. */
  async customerScript(
    accountId: string,
    namespace: string,
    name: string,
    more: {
      root: RunRoot;
      depth: number;
      limits: Partial<RunLimits> | undefined;
      outbound: OutboundScript | undefined;
      /** The version that is running already; without it, the one that is deployed. */
      versionId: string | undefined;
    },
  ): Promise<RunContext> {
    const { namespaces } = this.#options;
    const found = namespaces.find(accountId, namespace);
    const live = found && namespaces.live(accountId, namespace, name);
    if (live === undefined) throw refusals.notFound();
    return this.#contextOf(ownerOf(found!), { ...live, versionId: more.versionId ?? live.versionId }, more);
  }

  /** Whether a customer's script runs only where it is watched by itself, or gets what only the front has. */
  mustWatch({ loaded, caller }: RunContext): boolean {
    const { cells, tails } = this.#options;
    const { accountId, namespace, assets } = loaded.script;
    return (
      cells.customers.isSuspect(loaded.cell.owner) ||
      assets !== undefined ||
      tails.isWatched(caller) ||
      this.isTrusted(accountId, namespace!)
    );
  }

  hasOneVersion(accountId: string, namespace: string, name: string): boolean {
    const found = this.#options.namespaces.find(accountId, namespace);
    return found !== undefined && this.#options.scripts.find(ownerOf(found), name)?.live.length === 1;
  }

  isTrusted(accountId: string, namespace: string): boolean {
    return this.#options.namespaces.find(accountId, namespace)?.isTrusted ?? false;
  }

  /** For invocations over a lane of their own, those of workflows: the code of a version, and what it may ask for. */
  async prepare(live: LiveScript, limits: RunLimits): Promise<PreparedScript> {
    const context = { ...(await this.#top(live, noVisit())), limits };
    const { tails } = this.#options;
    return {
      script: this.cellScript(context),
      hooks: (trace) => new Run(this, context, trace),
      trace: (entrypoint, event) =>
        tails.isWatched(context.caller)
          ? openTrace(tails, context.caller, undefined, () => event, entrypoint)
          : undefined,
    };
  }

  cellScript({ loaded, limits }: RunContext): CellScript {
    return { ...loaded.cell, cpuMs: limits.cpuMs, memoryBytes: this.#options.limits.memoryBytes };
  }

  async #top(
    live: LiveScript,
    root: RunRoot,
    owner: Owner = { accountId: live.accountId },
  ): Promise<RunContext> {
    return this.#contextOf(owner, live, { root, depth: 0 });
  }

  async #contextOf(
    owner: Owner,
    live: LiveScript,
    {
      root,
      depth,
      limits,
      outbound,
    }: Pick<RunContext, "root" | "depth"> & {
      limits?: Partial<RunLimits> | undefined;
      outbound?: OutboundScript | undefined;
    },
  ): Promise<RunContext> {
    const loaded = await this.#load(owner, live);
    const { limits: defaults } = this.#options;
    const own = loaded.script.limits;
    return {
      loaded,
      caller: {
        accountId: live.accountId,
        scriptId: live.scriptId,
        scriptName: live.name,
        versionId: live.versionId,
      },
      // The strictest of the installation's, the script's own and the dispatcher's.
      limits: {
        cpuMs: Math.min(defaults.cpuMs, own?.cpuMs ?? Infinity, limits?.cpuMs ?? Infinity),
        subRequests: Math.min(
          defaults.subRequests,
          own?.subRequests ?? Infinity,
          limits?.subRequests ?? Infinity,
        ),
      },
      outbound,
      root,
      depth,
    };
  }

  async #load(owner: Owner, live: LiveScript): Promise<LoadedScript> {
    const { scripts } = this.#options;
    // A namespace may get another name, which its scripts are known by.
    const key = `${live.versionId} ${owner.namespace?.name ?? ""}`;
    const loaded = await this.#cache.get(key, async () => scripts.loadVersion(owner, live));
    if (loaded === undefined) throw refusals.notFound();
    return loaded;
  }

  async #run(
    context: RunContext,
    request: CellRequest,
    answer: RunOptions["answer"],
    event?: () => TailEvent["event"],
  ): Promise<void> {
    const { cells: all, tails } = this.#options;
    const { caller, loaded } = context;
    const cells = loaded.script.namespace === undefined ? all.own : all.customers;
    const trace = tails.isWatched(caller)
      ? openTrace(tails, caller, loaded.script.namespace, event ?? (() => requestEvent(request)))
      : undefined;
    const traced = trace === undefined ? request : { ...request, said: { ...request.said, isTraced: true } };
    const attempt = (to: RunOptions["answer"]) => (): RunOptions =>
      this.#attempt(context, traced, to, cells, trace);
    if (trace === undefined) await cells.run(attempt(answer));
    else await trace.follow(answer, async (sink) => cells.run(attempt(sink)));
    if (this.#isCareful(context, cells)) cells.behaved(groupOf(loaded));
  }

  /**
   * A script that dispatches runs its customers' scripts in its own cell, where a fault may be anyone's: it is the whole group
   * that is suspected then, and each of them runs where it is watched by itself until the culprit is found.
   */
  #attempt(
    context: RunContext,
    request: CellRequest,
    answer: RunOptions["answer"],
    cells: Cells,
    trace: RunTrace | undefined,
  ): RunOptions {
    const { loaded } = context;
    const script = this.cellScript(context);
    const isCareful = this.#isCareful(context, cells);
    const hooks = (): RunHooks => new Run(this, context, trace, isCareful);
    if (isCareful || !loaded.dispatches) return { script, request, answer, hooks };
    const generation = `${this.#options.generation()} ${context.limits.subRequests}`;
    return {
      script: {
        ...script,
        owner: groupOf(loaded),
        cpuMs: Math.min(script.cpuMs, loaded.customersCpuMs),
      },
      request: { ...request, said: { ...request.said, generation } },
      answer,
      hooks,
    };
  }

  #isCareful({ loaded }: RunContext, cells: Cells): boolean {
    return loaded.dispatches && cells.isSuspect(groupOf(loaded));
  }

  #requestOf(visit: Visit, body: CountedBody | null): CellRequest {
    const { request, path, isTls, cf } = visit;
    const headers = visit.scriptHeaders();
    headers.push(internal.proto, isTls ? "https" : "http");
    return { method: request.method ?? "GET", path, headers, body, cf: cf() };
  }

  #body(request: IncomingMessage): CountedBody | null {
    const { bodyBytesMax } = this.#options.limits;
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    if (Number(length ?? 0) > bodyBytesMax) throw visitorErrors.bodyTooLarge();
    return length !== undefined || coding !== undefined ? new CountedBody(request, bodyBytesMax) : null;
  }
}

/** What a script has made, as the next one gets it. */
function nestedRequest(
  { context, entrypoint, params, seesCf }: Target,
  url: URL,
  request: IncomingMessage,
  body: CountedBody | null,
): CellRequest {
  const headers = externalHeaders(request.rawHeaders, url.host);
  headers.push(internal.proto, url.protocol.slice(0, -1));
  const { visit } = context.root;
  return {
    method: request.method ?? "GET",
    path: url.pathname + url.search,
    headers,
    body,
    ...(seesCf && visit !== undefined && { cf: visit.cf() }),
    said: { entrypoint: entrypointName(entrypoint), ...(params && { params }) },
  };
}

const groupOf = ({ cell }: LoadedScript): string => `${cell.owner} and those it dispatches to`;
