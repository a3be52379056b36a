import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { respondWithAsset, type ScriptAssetRequest } from "../assets/asset-before-script.ts";
import type { WaitingClient } from "../../sandbox/limits/admission.ts";
import type { RunOptions } from "../../sandbox/cell.ts";
import { CellError } from "../../sandbox/errors.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { NearCell } from "../../sandbox/near-cell.ts";
import type { CellScript } from "../../sandbox/process/script.ts";
import type { EdgeHttpRequest, EdgeUpgradeRequest } from "../../edge/request/handlers.ts";
import { visitorHeaders } from "../../edge/http/headers.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { Outbound } from "../../edge/origin/outbound.ts";
import { ownerOf } from "../scripts/namespaces/namespaces.ts";
import type { BindingTypeName } from "../bindings.ts";
import type { LiveScript } from "../scripts/runtime-script.ts";
import type { ScriptOwner } from "../scripts/script.ts";
import type { TailEvent } from "../tail/event.ts";
import { requestEvent, triggerEvent } from "../tail/run-event.ts";
import { openTrace, type RunTrace, type ShowStacks } from "../tail/run-trace.ts";
import type { BindingHandler, Caller } from "../binding.ts";
import { bodyOf, nestedRequest, traced, visitorRequest } from "./cell-requests.ts";
import { CollectedResponse } from "./collected-response.ts";
import { refusals } from "./errors.ts";
import { answerOf } from "./event-answer.ts";
import { explained } from "./explained.ts";
import { noObjects, type ObjectCaller, type ObjectGate } from "./object-gate.ts";
import { Run } from "./run.ts";
import { RunCounts } from "../../sandbox/run-counts.ts";
import {
  contextOf,
  spanFrom,
  type RunContext,
  type RunLimits,
  type CallTarget,
  type Runs,
} from "./run-context.ts";
import { entrypointName, type OutboundScript } from "./run-parts.ts";
import { withoutVisitor, treeOf, type RunRoot } from "./run-root.ts";
import { runTraced } from "./run-span.ts";
import type { AnswerImageFetch, RuntimeOptions } from "./runtime-options.ts";
import { ScriptCache, strictest, withCpuLimit, type LoadedScript } from "./script-cache.ts";

const eventResponseBytesMax = 1024 * 1024;

/** A version's code for a cell, with the hooks for its invocations. */
export interface PreparedScript {
  script: CellScript;
  /** `traced` holds the span of the invocation, which may begin later. */
  hooks(trace: RunTrace | undefined, traced?: { span: Span | undefined }): RunHooks;
  /** Undefined without a live log of the script. */
  trace(entrypoint: string, event: TailEvent["event"]): RunTrace | undefined;
}

/** Runs the scripts of accounts and of their customers: for visitors, for other scripts, and for events. */
export class Runtime {
  readonly outbound: Outbound;
  readonly counts = new RunCounts();
  /** The capability of images sets it, since this room does not know images. */
  answerImageFetch: AnswerImageFetch = () => {
    throw new Error("The capability of images has not been created");
  };
  /** The capability of objects sets it, since it needs this one. */
  objects: ObjectGate = noObjects;
  readonly #options: RuntimeOptions;
  readonly #cache: ScriptCache;

  constructor(options: RuntimeOptions) {
    this.#options = options;
    this.outbound = options.outbound;
    this.#cache = new ScriptCache(options.limits, options.bindings);
    options.scripts.onGone((scriptId) => this.#cache.forget(scriptId));
  }

  /** Drops all cached versions, after a reset of the test kit: later versions may have the same ids. */
  reset = (): void => this.#cache.forgetAll();

  get treeSubRequests(): number {
    return this.#options.limits.treeSubRequests;
  }

  /**
   * Does work for a script outside of the cells, in a slot of its account. Subrequests of a script that was
   * itself fetched do not wait: that fetch has a slot already.
   */
  async asSubrequest(
    { loaded, root }: RunContext,
    client: WaitingClient,
    work: () => Promise<void>,
  ): Promise<void> {
    const { subrequests } = this.#options;
    const { accountId, owner } = loaded.cell;
    const share = subrequests.of(accountId, owner, root.hops > 0 ? "call" : "request");
    if ((await subrequests.within(share, client, work)) === "refused") throw refusals.tooManyInFlight();
  }

  /** Logs a failure of the platform during work for a script. */
  logFault(error: unknown, caller: Caller): void {
    this.#options.logger.error({ err: error, caller }, "the platform failed to answer a script's request");
  }

  bindingHandler(type: BindingTypeName): BindingHandler<BindingTypeName> | undefined {
    return this.#options.bindings.find(type)?.handler as BindingHandler<BindingTypeName> | undefined;
  }

  /** Runs a script for a visitor, or answers with a static asset. Rejects with a CellError if nothing was sent. */
  async answer(edgeRequest: EdgeHttpRequest, live: LiveScript, root: RunRoot): Promise<void> {
    const { request, response, ray, host, path } = edgeRequest;
    const context = contextOf(await this.#load(live), root);
    const asset: ScriptAssetRequest = { request, response, host, path, headers: ["cf-ray", ray] };
    if (await respondWithAsset(this.#options.assets, context.loaded.script, asset)) return;
    await this.#run(
      context,
      visitorRequest(edgeRequest, bodyOf(request, this.#options.limits.bodyBytesMax)),
      {
        response,
        headers: (raw, status) => visitorHeaders(raw, ray, status),
      },
    );
  }

  /** As `answer`, for a WebSocket. */
  async answerUpgrade(edgeRequest: EdgeUpgradeRequest, live: LiveScript, root: RunRoot): Promise<void> {
    const { socket, head, ray } = edgeRequest;
    const context = contextOf(await this.#load(live), root);
    await this.#run(context, visitorRequest(edgeRequest, null), {
      socket,
      head,
      headers: (raw, status) => visitorHeaders(raw, ray, status),
      idleTimeoutMs: this.#options.limits.idleTimeoutMs,
    });
  }

  /**
   * Runs a script's handler for an event other than a request: `scheduled`, `queue`, `tail`. Resolves with
   * the answer of the event's wrapper. Rejects with a CellError.
   */
  async invoke(
    owner: ScriptOwner,
    live: LiveScript,
    event: string,
    body: string | Uint8Array,
    entrypoint?: string,
    span?: Span,
  ): Promise<unknown> {
    const context = { ...contextOf(await this.#load(live, owner), withoutVisitor()), span };
    const response = new CollectedResponse(eventResponseBytesMax);
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
          metadata: { event, entrypoint: entrypointName(entrypoint) },
          body: Readable.from([body], { objectMode: false }),
        },
        { response, headers: (raw) => [...raw] },
        () => triggerEvent(event, body),
      );
    } finally {
      clearTimeout(timer);
    }
    const answer = response.bodyInTime(`The ${event} handler did not end within ${eventMs / 1000} seconds.`);
    return answerOf(answer.toString(), event);
  }

  /** Runs a script for another script; the answer goes to the gateway's response. */
  async runNested(
    target: CallTarget,
    { url, request, response }: { url: URL; request: IncomingMessage; response: ServerResponse },
  ): Promise<void> {
    const asset: ScriptAssetRequest = {
      request,
      response,
      host: url.hostname,
      path: url.pathname + url.search,
      headers: [],
    };
    if (
      target.entrypoint === undefined &&
      (await respondWithAsset(this.#options.assets, target.context.loaded.script, asset))
    )
      return;
    await this.#run(
      target.context,
      nestedRequest(target, url, request, bodyOf(request, this.#options.limits.bodyBytesMax)),
      { response, headers: (raw) => [...raw] },
    );
  }

  async runNestedUpgrade(
    target: CallTarget,
    { url, request, socket, head }: { url: URL; request: IncomingMessage; socket: Socket; head: Buffer },
  ): Promise<void> {
    await this.#run(target.context, nestedRequest(target, url, request, null), {
      socket,
      head,
      headers: (raw) => visitorHeaders(raw, ""),
      idleTimeoutMs: this.#options.limits.idleTimeoutMs,
    });
  }

  /** The context of an account's script that another script calls. */
  async accountScript(accountId: string, name: string, root: RunRoot, depth: number): Promise<RunContext> {
    const owner: ScriptOwner = { accountId };
    const live = this.#options.scripts.live(owner, name);
    if (live === undefined) throw refusals.notFound();
    return contextOf(await this.#load(live, owner), root, depth);
  }

  /** The context of a customer's script, with the options of its dispatcher. */
  async customerScript(
    accountId: string,
    namespace: string,
    name: string,
    more: {
      root: RunRoot;
      depth: number;
      limits: Partial<RunLimits> | undefined;
      outbound: OutboundScript | undefined;
      /** The version that runs already; the deployed one when undefined. */
      versionId: string | undefined;
    },
  ): Promise<RunContext> {
    const { namespaces } = this.#options;
    const found = namespaces.find(accountId, namespace);
    const live = found && namespaces.live(accountId, namespace, name);
    if (live === undefined) throw refusals.notFound();
    const { root, depth, limits, outbound, versionId = live.versionId } = more;
    const loaded = await this.#load({ ...live, versionId }, ownerOf(found!));
    return contextOf(loaded, root, depth, strictest(loaded.limits, limits), outbound);
  }

  /** The context of a script for a call or an event of one of its objects. */
  async objectScript(
    owner: ScriptOwner,
    live: LiveScript,
    { root, depth, isCustomer, limits, outbound, span }: ObjectCaller,
  ): Promise<RunContext> {
    const loaded = await this.#load(live, owner);
    const context = isCustomer
      ? contextOf(loaded, root, depth, strictest(loaded.limits, limits), outbound)
      : contextOf(loaded, root, depth);
    return { ...context, span };
  }

  /** Answers the requests of a run of an object. Scripts that it dispatches to must not run in the cell of objects. */
  objectHooks(context: RunContext, trace?: RunTrace): Run {
    return new Run(this, context, trace, true);
  }

  get bodyBytesMax(): number {
    return this.#options.limits.bodyBytesMax;
  }

  get idleTimeoutMs(): number {
    return this.#options.limits.idleTimeoutMs;
  }

  /** Whether a customer's script must run in a cell of customers, or needs something that only the gateway has. */
  mustWatch({ loaded, caller }: RunContext): boolean {
    const { cells, tails } = this.#options;
    const { accountId, namespace, assets } = loaded.script;
    return (
      cells.customers.isQuarantined(loaded.cell.owner) ||
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

  /** Prepares a version for invocations over a workflow stream: its code, and the hooks for its requests. */
  async prepare(live: LiveScript, limits: RunLimits): Promise<PreparedScript> {
    const context = contextOf(await this.#load(live), withoutVisitor(), 0, limits);
    return {
      script: this.cellScript(context),
      hooks: (trace, traced) => new Run(this, spanFrom(context, traced), trace),
      trace: (entrypoint, event) => this.traceOf(context, () => event, entrypoint),
    };
  }

  cellScript({ loaded, limits }: RunContext): CellScript {
    return withCpuLimit(loaded.cell, limits.cpuMs);
  }

  /** Returns a cached version at once: most requests need no other. */
  #load(live: LiveScript, owner: ScriptOwner = live): LoadedScript | Promise<LoadedScript> {
    // The namespace may be renamed, and its scripts see the name. Versions belong to one script only.
    const key = `${live.scriptId} ${live.versionId} ${owner.namespace?.name ?? ""}`;
    return this.#cache.peek(key) ?? this.#loadNew(key, live, owner);
  }

  async #loadNew(key: string, live: LiveScript, owner: ScriptOwner): Promise<LoadedScript> {
    const loaded = await this.#cache.get(key, async () => this.#options.scripts.loadVersion(owner, live));
    if (loaded === undefined) throw refusals.notFound();
    return loaded;
  }

  async #run(
    context: RunContext,
    request: CellRequest,
    answer: RunOptions["answer"],
    event?: () => TailEvent["event"],
  ): Promise<void> {
    if (context.span === undefined) return this.#runIn(context, request, answer, event);
    return runTraced(context, "script", request, async (sent) => this.#runIn(context, sent, answer, event));
  }

  async #runIn(
    context: RunContext,
    request: CellRequest,
    answer: RunOptions["answer"],
    event?: () => TailEvent["event"],
  ): Promise<void> {
    const { loaded, root, depth } = context;
    const tree = root.hops + depth === 0 ? undefined : treeOf(root);
    if (tree !== undefined && tree.running >= this.#options.limits.treeRunningMax)
      throw depth > 0 ? refusals.running() : new CellError("overloaded", refusals.running().message);
    const { cells } = this.#options;
    const trace = this.traceOf(context, event ?? (() => requestEvent(request)));
    const runs: Runs = {
      context,
      request: trace === undefined ? request : traced(request),
      kind: tree !== undefined ? "call" : event === undefined ? "request" : "event",
      cells: loaded.script.namespace === undefined ? cells.own : cells.customers,
      trace,
      last: undefined,
    };
    if (tree !== undefined) tree.running++;
    try {
      if (trace === undefined) await runs.cells.run(() => this.#attempt(runs, answer));
      else
        await trace.follow(answer, async (to) =>
          runs.cells
            .run(() => this.#attempt(runs, to))
            .catch(async (error: unknown) => Promise.reject(await this.explained(error, runs))),
        );
      this.counts.results.ok++;
    } catch (error) {
      this.counts.failed(error);
      throw trace === undefined && depth === 0 ? await this.explained(error, runs) : error;
    } finally {
      if (tree !== undefined) tree.running--;
    }
    const { group } = loaded;
    if (group !== undefined && runs.cells.isQuarantined(group.owner)) runs.cells.recordSuccess(group.owner);
  }

  /** A script's error with its stack mapped to the source. */
  async explained(error: unknown, { context, last }: Pick<Runs, "context" | "last">): Promise<unknown> {
    return explained(error, last?.thrownStack, this.#stacksOf(context.loaded));
  }

  /** Undefined without a live log of the script. */
  traceOf(
    { caller, loaded, span }: RunContext,
    event: () => TailEvent["event"],
    entrypoint?: string,
    objectId?: string,
  ): RunTrace | undefined {
    const { tails } = this.#options;
    if (!tails.isWatched(caller)) return undefined;
    const { namespace } = loaded.script;
    return openTrace({ tails, shown: this.#stacksOf(loaded) }, caller, namespace, event, {
      entrypoint,
      objectId,
      span,
    });
  }

  /** Maps stacks of a script by its source maps. */
  #stacksOf({ script }: LoadedScript): ShowStacks {
    return async (stacks) => this.#options.sourceMaps.shown(script.sourceMapsId, stacks);
  }

  /**
   * Customers' scripts run in the cell of their dispatcher, where a fault may be anyone's. So the whole group is
   * quarantined, and each customer runs in a cell of its own until the culprit is found.
   */
  #attempt(runs: Runs, answer: RunOptions["answer"]): RunOptions {
    const { context, request, kind, cells } = runs;
    const { group } = context.loaded;
    const isCareful = group !== undefined && cells.isQuarantined(group.owner);
    const hooks = (): RunHooks => (runs.last = new Run(this, context, runs.trace, isCareful));
    const script = this.cellScript(context);
    // WebSockets stay away, because they would last longer than a cell of objects. Live logs show each call.
    const mayBeNear = kind === "request" && !("socket" in answer) && runs.trace === undefined;
    const near = (): NearCell | undefined => (mayBeNear ? this.objects.near?.(context) : undefined);
    if (context.loaded.mayBeNear) return { script, request, answer, hooks, kind, near };
    if (group === undefined || isCareful) return { script, request, answer, hooks, kind };
    const generation = `${this.#options.generation()} ${context.limits.subRequests}`;
    return {
      script: withCpuLimit(group, Math.min(script.cpuMs, group.cpuMs)),
      // A sampled trace needs each dispatch to pass the gateway, which sees when a customer's script begins and ends.
      request:
        context.span?.isSampled === true
          ? request
          : { ...request, metadata: { ...request.metadata, generation } },
      answer,
      hooks,
      kind,
    };
  }
}
